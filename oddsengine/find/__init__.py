"""From detected rows to result frames: one module a kind, over one prepared board and one caller's view."""
