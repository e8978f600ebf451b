// @ts-nocheck
// Written by "npm run docs" from src/formats/isobmff/merkle-box.ts: change that.
import { decodeFirst } from 'cborg';

// Merkle boxes tell where a fragment stands in a tree, and prove it (C2PA 2.2 §A.5.4). Nobody signs them. Browsers run this module
// too (`scripts/console-modules.ts`), so it uses nothing of Node.

/** Content of a Merkle box. */

/** Levels of a tree over as many fragments as there may be, 2^24. */
const MAX_PROOF_DIGESTS = 24;
/** Lengths of a digest: SHA-256, SHA-384 and SHA-512. */
const DIGEST_SIZES_BYTES = [32, 48, 64];
/** Bytes of a Merkle box with the longest proof, and some for its numbers. */
export const MAX_MERKLE_BOX_BYTES = 2048;

/**
 * Reads the content of a Merkle box, behind its purpose. Undefined where it is malformed or could be written in another way (RFC 8949
 * §4.2.1, but for the order of keys), or holds more than a location with digests of one length, as many as a tree has levels, and zeros
 * behind them: some signers reserve space for the longest proof.
 */
export function readMerkleBox(content            )                        {
  if (content.length > MAX_MERKLE_BOX_BYTES) return undefined;
  const { uniqueId, localId, location, hashes: stated, ...others } = decoded(content);
  const hashes          = stated ?? [];
  if (!isCount(uniqueId) || !isCount(localId) || !isCount(location) || !isProof(hashes)) return undefined;
  return Object.keys(others).length === 0 ? { uniqueId, localId, location, hashes } : undefined;
}

function decoded(content            )                                    {
  try {
    const options = { strict: true, allowIndefinite: false, rejectDuplicateMapKeys: true };
    const [value, others]                        = decodeFirst(content, options);
    if (others.some((byte) => byte !== 0)) return {};
    return typeof value === 'object' && value !== null ? (value                           ) : {};
  } catch {
    // It is no Merkle box.
    return {};
  }
}

function isCount(value         )                  {
  return Number.isSafeInteger(value) && (value          ) >= 0;
}

function isProof(value         )                                 {
  if (!Array.isArray(value) || value.length > MAX_PROOF_DIGESTS) return false;
  const [first] = value;
  const sizeBytes = first instanceof Uint8Array ? first.length : 0;
  return (
    value.length === 0 ||
    (DIGEST_SIZES_BYTES.includes(sizeBytes) &&
      value.every((digest) => digest instanceof Uint8Array && digest.length === sizeBytes))
  );
}
