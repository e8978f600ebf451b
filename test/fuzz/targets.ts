import type { FuzzTarget } from './fuzz-target.ts';

/** Every target, and the module that has it: a process loads what its own target needs. */
const MODULES = {
  'movie-layout': 'media',
  'audio-layout': 'media',
  'probe-movie': 'media',
  'probe-matroska': 'media',
  'probe-stream': 'media',
  fragments: 'media',
  'subtitle-tracks': 'media',
  'picture-manifest': 'media',
  hls: 'playlist',
  mpd: 'playlist',
  patterns: 'playlist',
  players: 'players',
  'players-ffmpeg': 'players',
  listing: 'text',
  subtitles: 'text',
  requests: 'text',
  'manifest-store': 'manifest',
  'sdk-ingredient': 'manifest',
  'wasm-fragment': 'manifest',
} as const;

export type TargetName = keyof typeof MODULES;

export const TARGET_NAMES = Object.keys(MODULES) as TargetName[];

export async function loadTarget(name: TargetName): Promise<FuzzTarget> {
  const target = (await targetsOf(MODULES[name])).find((candidate) => candidate.name === name);
  if (target === undefined) throw new Error(`there is no target "${name}"`);
  return target;
}

async function targetsOf(module: (typeof MODULES)[TargetName]): Promise<readonly FuzzTarget[]> {
  if (module === 'media') return (await import('./media-targets.ts')).mediaTargets;
  if (module === 'playlist') return (await import('./playlist-targets.ts')).playlistTargets;
  if (module === 'players') return (await import('./player-targets.ts')).playerTargets;
  if (module === 'text') return (await import('./text-targets.ts')).textTargets;
  return (await import('./manifest-targets.ts')).manifestTargets;
}
