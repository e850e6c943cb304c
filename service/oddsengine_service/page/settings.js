// Settings of this browser: display, stakes, and list defaults. The node does not store them.

// What the node knows before anybody asks: kinds of opportunities, tiers, catalogs.
const { categories, doubtful, families, fees, kinds, methods, needs, providers, stale, tiers } = JSON.parse(document.getElementById("facts").textContent);

const SETTINGS = "oddsengine.settings";
const settings = {
  format: "american", theme: "", zone: "", currency: "",
  bankroll: 0, fraction: 0.25, most: 5, unit: 0, step: 1, total: 0,
  ...Object.fromEntries(kinds.map(({ name }) => [name, ""])), // minimum, or maximum, of each list
  ev: 1, books: null, sharp: "",
  welcomed: false, asked: false, // whether the first visit is over, and whether a bankroll was asked for
  ...JSON.parse(localStorage.getItem("oddsengine.money") ?? "{}"), // the old place of the stakes
  ...JSON.parse(localStorage.getItem(SETTINGS) ?? "{}"),
};

function keepSettings(changes) {
  Object.assign(settings, changes);
  localStorage.setItem(SETTINGS, JSON.stringify(settings));
  stakeMark += 1;
  document.documentElement.style.colorScheme = settings.theme;
  draw();
}

// Fill in the fields of the dialog.
function drawSettings() {
  for (const input of document.querySelectorAll("[data-setting]")) {
    const value = settings[input.dataset.setting];
    if (input.type === "radio") input.checked = input.value === value;
    else if (document.activeElement !== input) input.value = input.type === "number" && !value ? "" : value;
  }
  choose($("setting-sharp"), [["", [["", "Automatic"], ...byName(names.sportsbooks)]]], settings.sharp);
  write($("setting-books"), settings.books === null ? "All books" : `${counted(settings.books.length, "book")}: ${settings.books.map((id) => called("sportsbooks", id)).join(", ")}`);
}

function openSettings() {
  if (!$("setting-zone").options.length) choose($("setting-zone"), [["", [["", "System"], ["UTC", "UTC"], ...Intl.supportedValuesOf("timeZone").map((zone) => [zone, zone.replaceAll("_", " ")])]]], settings.zone);
  drawSettings();
  $("settings").showModal();
}

function changeSetting(input) {
  const name = input.dataset.setting;
  const number = input.type === "number" || name === "fraction";
  const bare = input.value === "" && name in KINDS;
  keepSettings({ [name]: number && !bare ? (name in KINDS ? Number(input.value) || 0 : Math.max(0, Number(input.value) || 0)) : input.value });
  if (name in KINDS) lists.least[name] = settings[name];
  if (name === "sharp") {
    lists.filter.sharp = settings.sharp;
    lists.replace("ev", []);
    listen();
  }
  changed();
}

// Make some books the default of every list.
function keepBooks(books) {
  keepSettings({ books });
  lists.filter.books = board.books = books && new Set(books);
  drawBooks();
  chooseBooks();
  drawSettings();
}
