"use strict";
import { $, ask, make, picture, say, themes, typing, withoutToken } from "/assets/common.js";

const AHEAD = 10;
let reviewer = new URLSearchParams(location.search).get("reviewer") || localStorage.getItem("mispair-reviewer") || "";
let item = null;
let began = 0;
let busy = false;

function card(kind, title, ...content) {
  return make("div", { class: `card ${kind}` }, make("b", { text: title }), ...content);
}

const words = (text) => make("p", { dir: "auto", text });

function otherPicture(id) {
  const image = make("img", { src: picture(id, 320), alt: "" });
  image.addEventListener("error", () => image.closest(".card").remove());
  return image;
}

function draw(items, progress) {
  item = items[0] || null;
  $("pair").hidden = item === null;
  $("done").hidden = item !== null;
  for (const button of document.querySelectorAll("[data-answer]")) button.disabled = item === null;
  tell(progress);
  (item === null ? $("main") : $("side")).append($("estimate-box"));
  if (item === null) return;
  $("picture").hidden = false;
  $("no-picture").hidden = true;
  $("picture").src = picture(item.image_id, 1280);
  const cards = [card("given", "given caption", words(item.caption))];
  if (item.proposed_caption !== null) cards.push(card("proposed", "proposed caption", words(item.proposed_caption)));
  if (item.proposal_first) cards.reverse();
  if (item.proposed_image_id !== null && item.proposed_image_id !== item.image_id) {
    cards.push(card("other", "picture proposed for the given caption", otherPicture(item.proposed_image_id)));
  }
  $("cards").replaceChildren(...cards);
  document.querySelector("[data-answer=proposal]").disabled = item.proposed_caption === null;
  for (const later of items.slice(1)) new Image().src = picture(later.image_id, 1280);
  began = performance.now();
}

function tell(progress) {
  $("answered").textContent = progress.answered.toLocaleString("en");
  $("undo").disabled = progress.answered === 0;
  $("left").textContent = progress.left.toLocaleString("en");
  $("bar").max = progress.pairs;
  $("bar").value = progress.pairs - progress.left;
  $("pace").textContent = progress.seconds === null ? "" : `${progress.seconds.toFixed(1)} s a pair`;
  $("controls").textContent = progress.controls < 5 ? "" : `your errors on controls: ${progress.control_errors} of ${progress.controls}`;
  const mine = progress.agreement.filter((row) => row.reviewers.includes(reviewer) && row.kappa !== null);
  $("agreement").textContent = mine.map((row) => {
    const other = row.reviewers.find((name) => name !== reviewer);
    return `agreement with ${other}: kappa ${row.kappa.toFixed(2)} on ${row.pairs} pairs`;
  }).join(" · ");
  const parts = [["random", "drawn at random"], ["useful", "most useful"], ["control", "controls"], ["disagreement", "disagreements"]];
  // Counted in tens, so that nobody learns what the last pair was: the sentence says how many it speaks of.
  const shown = parts.filter(([key]) => progress.shown[key]).map(([key, name]) => `${progress.shown[key]} ${name}`).join(", ");
  const counted = Object.values(progress.shown).reduce((sum, count) => sum + count, 0);
  $("shown").textContent = shown && `of the first ${counted}: ${shown}`;
  $("scale").hidden = progress.estimate === null;
  $("estimate").textContent = progress.estimate === null ? "not known yet" : progress.estimate.sentence;
  $("estimate-how").textContent = progress.estimate === null
    ? "The rate shows here once ten of the pairs drawn at random are answered: after some 25 answers."
    : "95 % interval from the pairs drawn at random; valid whatever the model is worth.";
  if (progress.estimate === null) return;
  const { low, high, rate } = progress.estimate;
  $("range").style.left = `${100 * low}%`;
  $("range").style.width = `${100 * (high - low)}%`;
  $("point").style.left = `${100 * rate}%`;
}

async function load() {
  try {
    const answer = await ask(`/api/review/next?reviewer=${encodeURIComponent(reviewer)}&ahead=${AHEAD}`);
    draw(answer.items, answer.progress);
    $("main").hidden = false;
  } catch (error) { say(error.message); }
}

async function answer(kind, caption) {
  if (busy || item === null) return;
  if (kind === "proposal" && item.proposed_caption === null) return;
  if (kind === "edit" && caption === undefined) {
    $("caption").value = item.caption;
    $("edit-dialog").showModal();
    return;
  }
  busy = true;
  say("");
  let refused = "";
  try {
    const seconds = Math.min((performance.now() - began) / 1000, 1e6);
    await ask("/api/decisions", { reviewer, place: item.place, pair: item.pair, answer: kind, caption: caption === undefined ? null : caption, seconds });
  } catch (error) { refused = error.message; }
  await load();
  if (refused) say(refused);
  busy = false;
}

async function undo() {
  if (busy) return;
  busy = true;
  say("");
  try {
    const taken = await ask("/api/decisions/undo", { reviewer });
    if (taken.undone === null) say("There is nothing left to take back.");
  } catch (error) { say(error.message); }
  await load();
  busy = false;
}

function begin() {
  $("who").textContent = reviewer;
  $("who").hidden = false;
  localStorage.setItem("mispair-reviewer", reviewer);
  load();
}

$("picture").addEventListener("error", () => { $("picture").hidden = true; $("no-picture").hidden = false; });
for (const button of document.querySelectorAll("[data-answer]")) button.addEventListener("click", () => answer(button.dataset.answer));
$("undo").addEventListener("click", undo);
$("who").addEventListener("click", () => { $("name").value = reviewer; $("name-dialog").showModal(); });
$("caption").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); $("edit-form").requestSubmit(); }
});
$("name-dialog").addEventListener("cancel", (event) => { if (!reviewer) event.preventDefault(); }); // nothing to go back to
$("help").addEventListener("click", () => $("legend").showModal());
$("legend-close").addEventListener("click", () => $("legend").close());
$("edit-cancel").addEventListener("click", () => $("edit-dialog").close());
$("edit-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const caption = $("caption").value.trim();
  if (!caption) return;
  $("edit-dialog").close();
  answer("edit", caption);
});
$("name-form").addEventListener("submit", (event) => {
  event.preventDefault();
  reviewer = $("name").value.trim();
  if (!reviewer) return;
  $("name-dialog").close();
  begin();
});
addEventListener("keydown", (event) => {
  if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const pressed = [...document.querySelectorAll("button[data-answer]")]
    .find((button) => button.querySelector("kbd").textContent === event.key);
  if (pressed) { event.preventDefault(); answer(pressed.dataset.answer); }
  else if (event.key === "u") undo();
  else if (event.key === "?") $("legend").showModal();
});
themes();
withoutToken();
ask("/api/health").then((health) => { $("search").hidden = health.pairs === 0; }).catch(() => {});
if (reviewer) begin(); else $("name-dialog").showModal();
