import { randomBytes } from 'node:crypto';
import { riff } from '#formats/riff/riff.ts';
import { type Chunk, FORMAT, takeApart, wav } from '../../support/media/wav-bytes.ts';
import { formatHandlerContract } from '../format-handler-contract.ts';

const sound = (sizeBytes: number): Chunk => ({ id: 'data', payload: randomBytes(sizeBytes) });
const LABEL: Chunk = { id: 'LIST', payload: Buffer.from('INFOINAM\x04\0\0\0song', 'latin1') };
const SMALL = { plain: wav([FORMAT, sound(801)]), labelled: wav([LABEL, FORMAT, sound(800)], { after: 'behind it' }) };
const LARGE = wav([FORMAT, sound(2_000_000)]);

formatHandlerContract('RIFF', riff, {
  files: {
    'a WAV of an odd number of bytes': () => SMALL.plain,
    'a WAV with a label in front and something behind': () => SMALL.labelled,
  },
  large: () => LARGE,
  mediaOf: (bytes) => {
    const { chunks, after } = takeApart(bytes);
    return [chunks.filter(({ id }) => id !== 'C2PA'), after];
  },
});
