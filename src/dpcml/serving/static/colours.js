// Eight colours that people with any kind of colour vision can tell apart (after Okabe and Ito), each with a letter.

const NAMES = ["blue", "vermillion", "green", "purple", "orange", "grey", "navy", "brown"];

// Colour and letter of each interest, by size: the largest is A.
export function legend(interests) {
  return new Map(interests.map((one, k) => [one.number, {
    letter: String.fromCharCode(65 + (k % 26)),
    colour: `var(--${NAMES[k % NAMES.length]})`,
    variable: `--${NAMES[k % NAMES.length]}`,
    name: one.name,
  }]));
}
