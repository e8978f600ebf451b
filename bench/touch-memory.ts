// `node bench/touch-memory.ts BYTES` writes to so much memory, so that the machine has it, and ends.
const PIECE_BYTES = 256 * 1024 * 1024;

const pieces: Buffer[] = [];
for (let left = Number(process.argv[2]); left > 0; left -= PIECE_BYTES) pieces.push(Buffer.alloc(PIECE_BYTES, 1));
