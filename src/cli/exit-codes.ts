/** Exit codes of `attestream`. The first of these that applies: interrupted, then usage, then a failed input, then a bad verdict. */
export const EXIT = {
  ok: 0,
  /** An input failed. */
  inputFailed: 1,
  /** The command, its paths or the configuration are wrong. */
  usage: 2,
  /** A verdict is `invalid` or `none`. */
  badVerdict: 3,
  interrupted: 130,
} as const;
