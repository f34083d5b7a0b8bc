// Sphinx's html_search_scorer: options, keys and claims are looked up in the pages that define them.
const PAGES = { "docs/reference": 20, "docs/using": 15, "docs/specs": 15, "docs/decisions": -20, CHANGELOG: -20 };
var Scorer = {
  score: ([page, , , , score]) => score + (PAGES[page] ?? 0),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
