// Light and dark: what the system says, unless the reader chooses.

function listenToTheme(select) {
  const tell = () => document.dispatchEvent(new Event("themechange"));
  select.addEventListener("change", () => {
    document.documentElement.dataset.theme = select.value;
    tell();
  });
  darkSystem.addEventListener("change", tell);
  // A page that was open before comes back with the reader's choice in the field.
  document.documentElement.dataset.theme = select.value;
}
