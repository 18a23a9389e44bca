"use strict";
import { $, ask, make, picture, say, themes, typing, withoutToken } from "/assets/common.js";
import { clearHeat, drawHeat, strongest } from "/assets/heat.js";

let latest = 0; // only the last question asked is answered
let query = null;
let open = null;
let shown = []; // what the grid shows, in order
let judged = false; // whether an audit's words stand in the index

function splitOf(answer) { // data without splits has one, called all: nothing to tell
  return answer.split === "all" ? "" : answer.split;
}

function tileImage(answer, side) {
  const image = make("img", { src: picture(answer.image, side), alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(make("span", { class: "quiet", text: "no picture" })));
  image.addEventListener("load", () => { // what a tile would cut off by much is shown whole
    const ratio = image.naturalWidth / image.naturalHeight;
    image.classList.toggle("whole", ratio < 1.15 || ratio > 1.9);
  });
  return image;
}

function hit(answer) {
  const suspicious = answer.p_mismatch !== null && answer.p_mismatch > 0.5;
  const label = `Open pair ${answer.pair}: ${answer.caption}${suspicious ? ", suspicious" : ""}`;
  const tile = make("button", { type: "button", class: "tile", "aria-label": label, onclick: () => show(answer) }, tileImage(answer, 320));
  const foot = make("div", { class: "foot" }, answer.score === undefined ? make("span", { text: splitOf(answer) })
    : make("span", { text: answer.score.toFixed(3), title: "score: how near it is to what was asked" }));
  if (answer.p_mismatch !== null) {
    foot.append(make("span", { class: suspicious ? "tag wrong" : "tag", text: suspicious ? "suspicious" : `p ${answer.p_mismatch.toFixed(2)}`, title: judgement(answer) }));
  }
  const words = make("div", { class: "words", dir: "auto" }, make("span", { text: answer.caption }));
  return make("li", { class: "hit" }, tile, words, foot);
}

function judgement(answer) {
  return answer.p_mismatch === null ? "" : `mismatched with probability ${answer.p_mismatch.toFixed(2)}, says the audit`;
}

function waiting(yes) { // the old answers stay until the new ones are there
  $("results").setAttribute("aria-busy", yes);
}

function fill(answers) {
  waiting(false);
  shown = answers;
  $("results").replaceChildren(...answers.map(hit));
}

async function search(body, what, asked = null) {
  const mine = ++latest;
  query = { body, what, asked };
  const suspicious = $("suspicious").value;
  const filters = {
    side: $("side").value, k: 48,
    split: $("split").value || null,
    suspicious: suspicious === "" ? null : suspicious === "yes",
  };
  $("told").textContent = "Searching…";
  waiting(true);
  $("asked").hidden = asked === null;
  if (asked !== null) $("asked").src = asked;
  say("");
  try {
    const found = await ask("/api/search", { ...body, ...filters });
    if (mine !== latest) return;
    fill(found.answers);
    $("empty").hidden = found.answers.length > 0;
    $("empty").textContent = "Nothing passes these filters.";
    $("told").textContent = [`${found.answers.length} nearest to ${what}`, ...found.notes].join(" · ");
  } catch (error) {
    if (mine !== latest) return;
    $("told").textContent = "";
    fill([]);
    $("empty").hidden = true;
    say(error.message);
  }
}

async function sample() {
  const mine = ++latest;
  query = null;
  try {
    const suspicious = $("suspicious").value;
    const filters = `&split=${encodeURIComponent($("split").value)}&suspicious=${suspicious}`;
    const some = await ask(`/api/sample?k=24${filters}`);
    if (mine !== latest) return;
    fill(some.answers);
    $("asked").hidden = true;
    $("empty").hidden = some.answers.length > 0;
    $("empty").textContent = "Nothing passes these filters.";
    const drawn = `${some.answers.length} of ${some.pairs.toLocaleString("en")} pairs, at random.`;
    $("told").textContent = `${drawn} Ask in words or drop a picture; open a pair to see what is near it.`;
  } catch (error) { waiting(false); say(error.message); }
}

function byText(push = true) {
  const text = $("text").value.trim();
  if (push) history.pushState(null, "", text ? `?q=${encodeURIComponent(text)}` : "/");
  if (text) search({ text }, `“${text}”`);
  else sample();
}

const inAddress = () => new URLSearchParams(location.search).get("q") || "";

function fromAddress() {
  $("text").value = inAddress();
  byText(false);
}

// What was typed, or even asked, before the page had begun stays.
function begin() {
  if (latest > 0) return;
  if (inAddress()) fromAddress();
  else sample();
}

function byPicture(file) {
  if (!file) return;
  if (file.size > 8e6) { say("That picture is larger than 8 MB; choose a smaller one."); return; }
  const reader = new FileReader();
  reader.addEventListener("load", () => {
    const data = String(reader.result);
    $("text").value = "";
    search({ picture: data.split(",")[1] || "" }, file.name, data);
  });
  reader.readAsDataURL(file);
}

function strip(title, answers) {
  const items = answers.map((answer) => {
    const tile = make("button", { type: "button", class: "tile", "aria-label": `Open pair ${answer.pair}: ${answer.caption}`,
      onclick: () => show(answer) }, tileImage(answer, 160));
    return make("li", { dir: "auto" }, tile, make("span", { text: answer.caption }));
  });
  return make("section", {}, make("h3", { text: title }), make("ul", { class: "strip" }, ...items));
}

async function show(answer) {
  open = answer;
  $("detail-caption").textContent = answer.caption;
  $("detail-none").hidden = true;
  $("detail-picture").hidden = false;
  $("detail-picture").src = picture(answer.image, 1280);
  $("detail-about").textContent = [`pair ${answer.pair}`, answer.image, splitOf(answer), judgement(answer)].filter(Boolean).join(" · ");
  $("wrong-button").hidden = !answer.reviewable;
  $("why").replaceChildren();
  $("how").textContent = "";
  clearHeat();
  $("neighbours").replaceChildren();
  if (!$("detail").open) $("detail").showModal();
  $("detail").scrollTop = 0;
  try {
    const pair = await ask(`/api/pairs/${answer.pair}`);
    if (open !== answer) return;
    $("neighbours").replaceChildren(
      strip("Pictures like this picture", pair.neighbours.images_images),
      strip("Captions nearest to this picture", pair.neighbours.images_texts),
      strip("Pictures nearest to this caption", pair.neighbours.texts_images),
      strip("Captions like this caption", pair.neighbours.texts_texts),
    );
  } catch (error) { $("how").textContent = error.message; }
}

function marked(words) {
  const most = Math.max(...words.map((word) => Math.abs(word.carried || 0)), 1e-9);
  return words.map((word) => {
    if (word.carried === null) return document.createTextNode(word.word);
    const strength = Math.abs(word.carried) / most;
    const kind = strength < 0.15 ? "carried" : word.carried > 0 ? "carried for" : "carried against";
    const title = `${word.carried > 0 ? "+" : ""}${word.carried.toFixed(3)}`;
    return make("span", { class: strength > 0.6 ? `${kind} strong` : kind, title, text: word.word });
  });
}

async function why() {
  if (!open) return;
  const answer = open;
  const text = query && query.body.text ? query.body.text : answer.caption;
  const path = `/api/why?pair=${answer.pair}&text=${encodeURIComponent(text)}`;
  $("how").textContent = "Leaving out one word after the other…";
  try {
    const words = await ask(`${path}&regions=false`);
    if (open !== answer) return;
    $("why").replaceChildren(...marked(words.words));
    $("how").textContent = "Covering one region after the other…";
    const regions = await ask(path);
    if (open !== answer) return;
    drawHeat(regions.regions);
    $("how").textContent = `${regions.how}${strongest(regions.regions)}`;
  } catch (error) { if (open === answer) $("how").textContent = error.message; }
}

async function wrong() {
  if (!open || $("wrong-button").hidden) return;
  try {
    await ask("/api/review/flag", { pair: open.pair });
    $("how").textContent = "Sent to review.";
  } catch (error) { $("how").textContent = error.message; }
}

function columns(tiles) {
  const top = tiles.length ? tiles[0].getBoundingClientRect().top : 0;
  return Math.max(tiles.filter((tile) => tile.getBoundingClientRect().top === top).length, 1);
}

function row(by) { // true where a tile had the focus, so that the page does not scroll too
  const tiles = [...document.querySelectorAll("#results .tile")];
  const at = tiles.indexOf(document.activeElement);
  if (open || at < 0) return false;
  const next = tiles[at + by * columns(tiles)];
  if (next) next.focus();
  return true;
}

function step(by) {
  if (open) {
    const at = shown.indexOf(open);
    if (at >= 0 && shown[at + by]) show(shown[at + by]);
    return;
  }
  const tiles = [...document.querySelectorAll("#results .tile")];
  const at = tiles.indexOf(document.activeElement);
  const next = tiles[Math.min(Math.max(at + by, 0), tiles.length - 1)];
  if (next) next.focus();
}

$("ask").addEventListener("submit", (event) => { event.preventDefault(); byText(); });
$("choose").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => { byPicture($("file").files[0]); $("file").value = ""; });
for (const id of ["side", "split", "suspicious"]) {
  $(id).addEventListener("change", () => (query ? search(query.body, query.what, query.asked) : sample()));
}
$("why-button").addEventListener("click", why);
$("wrong-button").addEventListener("click", wrong);
$("close").addEventListener("click", () => $("detail").close());
$("help").addEventListener("click", () => $("legend").showModal());
$("legend-close").addEventListener("click", () => $("legend").close());
$("detail").addEventListener("close", () => { open = null; clearHeat(); });
$("detail").addEventListener("click", (event) => { if (event.target === $("detail")) $("detail").close(); });
$("detail-picture").addEventListener("error", () => { $("detail-picture").hidden = true; $("detail-none").hidden = false; });
addEventListener("popstate", fromAddress);
addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
addEventListener("dragleave", () => document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  byPicture(event.dataTransfer.files[0]);
});
addEventListener("keydown", (event) => {
  if (typing(event) || event.ctrlKey || event.metaKey || event.altKey) return;
  const legend = $("legend").open;
  if (event.key === "/" && !open && !legend) { event.preventDefault(); $("text").focus(); }
  else if (event.key === "?" && !legend) $("legend").showModal();
  else if (event.key === "w") why();
  else if (event.key === "x") wrong();
  else if (event.key === "ArrowRight") step(1);
  else if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "ArrowDown" && row(1)) event.preventDefault();
  else if (event.key === "ArrowUp" && row(-1)) event.preventDefault();
});
themes();
withoutToken();
ask("/api/health").then((health) => {
  $("review").hidden = !health.review;
  judged = health.judged;
  $("suspicious-label").hidden = !judged;
  $("split-label").hidden = health.splits.length < 2;
  $("split").append(...health.splits.map((name) => make("option", { value: name, text: name })));
  begin();
}).catch((error) => say(error.message));
