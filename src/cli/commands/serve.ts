import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';

interface ServeOptions {
  readonly config?: string;
  readonly bind?: string;
  readonly dataDir?: string;
}

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('Runs the service until it is stopped.')
    .option('--config <file>', 'configuration file')
    .option('--bind <address>', 'address and port, such as 127.0.0.1:8080')
    .option('--data-dir <folder>', 'folder of the job store')
    .action(async ({ config, bind, dataDir }: ServeOptions) => {
      if (config !== undefined) process.env['SERVICE_CONFIG_PATH'] = config;
      if (bind !== undefined) process.env['SERVICE__SERVER__BIND_ADDR'] = bind;
      if (dataDir !== undefined) process.env['SERVICE__JOBS__DATA_DIR'] = dataDir;
      const { runService } = await import('#service.ts');
      await runService();
      // It has told why it could not start.
      if (process.exitCode === 1) process.exitCode = EXIT.usage;
    });
}
