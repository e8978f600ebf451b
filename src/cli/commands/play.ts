import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Command } from 'commander';
import { findProgram } from '#processes/find-program.ts';
import { CollectedLog } from '#telemetry/collected-log.ts';
import { EXIT } from '../exit-codes.ts';
import { Interruption } from '../interruption.ts';
import { Terminal } from '../terminal.ts';

export function addPlayCommand(program: Command): void {
  program
    .command('play')
    .argument('<path>', 'publication (folder or playlist) or media file')
    .description('Plays a publication or file in a browser on this host, and verifies it meanwhile. Ctrl-C ends it.')
    .action(play);
}

async function play(path: string): Promise<void> {
  const terminal = new Terminal();
  const [{ startPlayServer }, { playedFile }] = await Promise.all([
    import('#http/play-server.ts'),
    import('../played-file.ts'),
  ]);
  const server = await startPlayServer(playedFile(path), new CollectedLog());
  const { signal } = new Interruption();
  terminal.result({ address: server.address }, server.address);
  openBrowser(server.address, terminal);
  if (!signal.aborted) await once(signal, 'abort');
  await server.close();
  process.exitCode = EXIT.interrupted;
}

/** Hands an address to the desktop, where there is one. */
function openBrowser(address: string, terminal: Terminal): void {
  const { DISPLAY: x11, WAYLAND_DISPLAY: wayland } = process.env;
  const opener = x11 || wayland ? findProgram('xdg-open') : null;
  if (opener === null) return terminal.note('Open the address in a browser.');
  const child = spawn(opener, [address], { stdio: 'ignore', detached: true });
  child.on('error', () => terminal.note('Open the address in a browser.'));
  child.unref();
}
