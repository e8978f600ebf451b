/** What makes two submissions the same. */
export interface IdempotencyKey {
  /** As the client sent it: printable ASCII, at most 255 characters. */
  readonly key: string;
  /** SHA-256 of what was asked for, in hexadecimal. */
  readonly digest: string;
}
