/** What makes two submissions the same. */
export interface IdempotencyKey {
  /** As the client sent it, printable ASCII; behind the name of its caller and a space, where it has one. */
  readonly key: string;
  /** SHA-256 of what was asked for, in hexadecimal. */
  readonly digest: string;
}
