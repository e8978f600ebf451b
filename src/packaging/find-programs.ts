import { AppError } from '#errors/app-error.ts';
import { findProgram } from '#processes/find-program.ts';
import { findPackager } from './programs/shaka-packager.ts';

/** A program that packaging starts: its path, or the problem where there is none. */
export interface FoundProgram {
  readonly name: string;
  readonly path: string | null;
  /** The features that are missing without it, and the remedy; for people. */
  readonly problem: string | null;
  /** False where only some inputs need it. */
  readonly isNeeded: boolean;
}

/** Finds the programs of packaging, as the packaging of an input does. */
export function findPrograms(): readonly FoundProgram[] {
  return [packager(), ...['ffmpeg', 'mkfifo'].map(optional)];
}

function packager(): FoundProgram {
  const program = { name: 'packager', isNeeded: true };
  try {
    return { ...program, path: findPackager(), problem: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...program, path: null, problem: error.message };
  }
}

function optional(name: string): FoundProgram {
  const path = findProgram(name);
  const problem = `${name} is not installed: media that the packager does not read itself is refused by the operations package and c2pa-package. Install it, such as with "apt install ${name === 'mkfifo' ? 'coreutils' : name}".`;
  return { name, path, problem: path === null ? problem : null, isNeeded: false };
}
