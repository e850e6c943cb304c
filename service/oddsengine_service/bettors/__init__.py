"""What bettors keep on a node and what it does for them: bets and alerts."""
