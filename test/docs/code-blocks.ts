import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = join(fileURLToPath(import.meta.url), '../../..');

/** A fenced block of a page: its language with the words after it, its text, and the heading that it stands under. */
export interface CodeBlock {
  readonly page: string;
  readonly heading: string;
  readonly info: string;
  readonly text: string;
}

/** Returns the fenced blocks of a page, in their order. */
export function blocksOf(page: string): CodeBlock[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  let heading = '';
  return [...text.matchAll(/^#+ (.*)$|^```(.*)\n([\s\S]*?)^```$/gm)].flatMap(([, title, info = '', block = '']) => {
    if (title === undefined) return [{ page, heading, info, text: block }];
    heading = title;
    return [];
  });
}
