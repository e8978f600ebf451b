/** In a query everything is text, so numbers are read from it; `0x10` and `1e2` are none. Fractions are left to the schema. */
export const wholeNumber = (text: unknown): unknown =>
  /^-?\d{1,9}(?:\.\d{1,9})?$/.test(String(text)) ? Number(text) : text;
