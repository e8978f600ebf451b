import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from '#processes/find-program.ts';

/** Media by their recipes. Starting ffmpeg takes a fifth of a second of processor time, and many test files make the same. */
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/attestream-media/', import.meta.url));

/**
 * Runs ffmpeg in a folder. What it made there before of the same arguments and inputs, for any test file, is copied. The last
 * argument is a relative path.
 */
export function makeMedia(folder: string, args: readonly string[]): void {
  const kept = join(CACHE, recipeOf(folder, args));
  if (!existsSync(kept) && !tryKeeping(kept, folder, args)) return runFfmpeg(folder, args);
  cpSync(kept, folder, { recursive: true });
}

/** Identifies what ffmpeg makes: by its arguments, and by the contents of the files among its inputs. */
function recipeOf(folder: string, args: readonly string[]): string {
  const recipe = createHash('sha256').update(programVersion());
  for (const [index, arg] of args.entries()) {
    const path = resolve(folder, arg);
    recipe.update('\0').update(args[index - 1] === '-i' && existsSync(path) ? readFileSync(path) : arg);
  }
  return recipe.digest('hex');
}

function programVersion(): string {
  const program = findProgram('ffmpeg');
  if (program === null) throw new Error('ffmpeg is not installed');
  const { size, mtimeMs } = statSync(program);
  return `${size} ${mtimeMs}`;
}

/**
 * Makes media in the cache. Returns false where they depend on more than the recipe tells: on files that other files or
 * options name, which are not in the cache's folder.
 */
function tryKeeping(kept: string, folder: string, args: readonly string[]): boolean {
  const output = args.at(-1) ?? '';
  const inputs = args.filter((_, index) => args[index - 1] === '-i');
  if (isAbsolute(output) || inputs.some((input) => /\.(?:m3u8|mpd|txt|ffconcat)$/.test(input))) return false;
  mkdirSync(CACHE, { recursive: true });
  const staged = mkdtempSync(join(CACHE, 'staged-'));
  try {
    mkdirSync(join(staged, dirname(output)), { recursive: true });
    const isFile = (arg: string, index: number) => args[index - 1] === '-i' && existsSync(resolve(folder, arg));
    runFfmpeg(
      staged,
      args.map((arg, index) => (isFile(arg, index) ? resolve(folder, arg) : arg)),
    );
    // Another process may have been faster, with the same media.
    if (!existsSync(kept)) renameSync(staged, kept);
    return true;
  } catch {
    return existsSync(kept);
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
}

function runFfmpeg(folder: string, args: readonly string[]): void {
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...args], { cwd: folder, stdio: 'pipe' });
}
