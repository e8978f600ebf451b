/** The hash of fragments, init segments and the trees over them; readers are fastest at it, and all know it. */
export const FRAGMENT_ALGORITHM = 'sha256';

/** Length of its digests in bytes. */
export const DIGEST_SIZE_BYTES = 32;
