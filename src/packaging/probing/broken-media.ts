/** Thrown for a file that is media and cannot be read; its message ends the sentence `"<path>" …`. */
export class BrokenMedia extends Error {
  override readonly name = 'BrokenMedia';
}
