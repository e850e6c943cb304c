// Settings of this browser: how things are shown, stakes, and where lists begin. They are never sent.

const SETTINGS = "oddsengine.settings";
const settings = {
  format: "american", theme: "", zone: "", currency: "",
  bankroll: 0, fraction: 0.25, most: 5, unit: 0, step: 1, total: 0,
  ev: 1, arbitrage: "", low_hold: "", middles: "", books: null, sharp: "",
  ...JSON.parse(localStorage.getItem("oddsengine.money") ?? "{}"), // where amounts were stored before
  ...JSON.parse(localStorage.getItem(SETTINGS) ?? "{}"),
};

function keepSettings(changes) {
  Object.assign(settings, changes);
  localStorage.setItem(SETTINGS, JSON.stringify(settings));
  stakeMark += 1;
  document.documentElement.style.colorScheme = settings.theme;
  draw();
}

// What the fields of the dialog say.
function drawSettings() {
  for (const input of document.querySelectorAll("[data-setting]")) {
    const value = settings[input.dataset.setting];
    if (input.type === "radio") input.checked = input.value === value;
    else if (document.activeElement !== input) input.value = input.type === "number" && !value ? "" : value;
  }
  const books = [...names.sportsbooks].sort((a, b) => collator.compare(a[1], b[1]));
  choose($("setting-sharp"), [["", [["", "Automatic"], ...books]]], settings.sharp);
  write($("setting-books"), settings.books === null ? "All books" : `${settings.books.length} books: ${settings.books.map((id) => called("sportsbooks", id)).join(", ")}`);
}

function openSettings(first) {
  if (!$("setting-zone").options.length) choose($("setting-zone"), [["", [["", "This device's"], ["UTC", "UTC"], ...Intl.supportedValuesOf("timeZone").map((zone) => [zone, zone.replaceAll("_", " ")])]]], settings.zone);
  drawSettings();
  $("settings").showModal();
  $(first)?.focus();
}

function changeSetting(input) {
  const name = input.dataset.setting;
  const number = input.type === "number" || name === "fraction";
  const bare = input.value === "" && name in THRESHOLDS;
  keepSettings({ [name]: number && !bare ? (name in THRESHOLDS ? Number(input.value) || 0 : Math.max(0, Number(input.value) || 0)) : input.value });
  if (name in THRESHOLDS) lists.least[name] = settings[name];
  if (name === "sharp") {
    lists.filter.sharp = settings.sharp;
    lists.replace("ev", []);
    listen();
  }
  changed();
}

// The books of the filter become those that every list begins with.
function keepBooks(books) {
  keepSettings({ books });
  lists.filter.books = board.books = books && new Set(books);
  drawBooks();
  chooseBooks();
  drawSettings();
}
