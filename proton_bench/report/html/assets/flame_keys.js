// The flame graph by keyboard.

/** Returns what a key does to a flame graph, or null where it means nothing. */
function flameKey(flame, key) {
  const { rows, view } = flame;
  const { selected, zoom } = view;
  switch (key) {
    case "ArrowDown":
      return () => flame.select(rows.firstChild(selected));
    case "ArrowUp":
      return () => flame.select(selected > zoom ? rows.parents[selected] : zoom);
    case "ArrowRight":
      return () => flame.select(rows.right(selected, rows.ends[zoom]));
    case "ArrowLeft":
      return () => flame.select(rows.left(selected, zoom));
    case "Home":
      return () => flame.select(zoom);
    case "Enter":
    case " ":
      return () => flame.zoomTo(selected);
    case "Escape":
    case "Backspace":
      return () => flame.zoomOut();
    default:
      return null;
  }
}

function listenToFlameKeys(flame, scroller) {
  scroller.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = flameKey(flame, event.key);
    if (action === null) return;
    event.preventDefault();
    action();
  });
}

function listenToSearchKeys(flame, input, scroller) {
  input.addEventListener("input", () => flame.search(input.value));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      flame.nextFound(event.shiftKey);
    } else if (event.key === "Escape") {
      event.preventDefault();
      input.value = "";
      flame.search("");
      scroller.focus();
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, select, textarea") !== null;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}
