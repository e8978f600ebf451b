import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sendFile, startServer, type TestServer } from '../support/servers/http-server.ts';

/** Serves the files of a folder: below `/ranged/` in ranges, below `/whole/` only whole, so that they have to be spooled. */
export async function serveMedia(folder: string): Promise<TestServer> {
  const contents = new Map<string, Buffer>();
  return await startServer((request, response) => {
    const [, way = '', name = ''] = (request.url ?? '').split('/');
    const content = contents.get(name) ?? readFileSync(join(folder, name));
    contents.set(name, content);
    sendFile(request, response, { content, ranges: way === 'ranged' });
  });
}
