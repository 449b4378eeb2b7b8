// A browser loads no search index for a page that is opened as a file, so the theme hides the search: say what helps.
if (location.protocol === "file:") {
  document.querySelector('label.md-header__button[for="__search"]')?.remove()
  const note = Object.assign(document.createElement("small"), { textContent: "to search: python -m http.server" })
  document.querySelector(".md-header__inner")?.append(note)
}
