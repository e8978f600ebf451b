import { serveParent, tellParent } from '#processes/parent.ts';

// Answers each probe with its number.

let asked = 0;

serveParent(() => {
  asked += 1;
  tellParent({ answer: { problem: String(asked) } });
});
