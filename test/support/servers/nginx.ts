import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { OwnAddress } from '../../../scripts/own-address.ts';
import { type FileServer, startProgram } from './file-server.ts';

/**
 * Starts nginx over a folder. The same files are at several addresses: `/html/` and `/json/` list directories, `/plain/`
 * lists nothing, `/no-ranges/` gives no ranges, `/gzip/` answers packed whatever is asked, `/named/` gives a file name.
 */
export function startNginx(root: string): Promise<FileServer> {
  return startProgram('nginx', (folder, address) => {
    mkdirSync(join(folder, 'temp'));
    writeFileSync(join(folder, 'nginx.conf'), configuration(folder, root, address));
    return ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'];
  });
}

function configuration(folder: string, root: string, { host, port }: OwnAddress): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
master_process off;
${process.getuid?.() === 0 ? 'user root;' : ''}
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/temp/${name};`).join('\n  ')}
  access_log off;
  sendfile on;
  server_tokens off;
  absolute_redirect off;
  types { video/mp4 mp4 m4s; audio/wav wav; application/vnd.apple.mpegurl m3u8; application/dash+xml mpd; }
  default_type application/octet-stream;
  server {
    listen ${host}:${port} backlog=1024;
    location /html/ { alias ${root}/; autoindex on; }
    location /rounded/ { alias ${root}/; autoindex on; autoindex_exact_size off; }
    location /json/ { alias ${root}/; autoindex on; autoindex_format json; }
    location /plain/ { alias ${root}/; }
    location /no-ranges/ { alias ${root}/; autoindex on; max_ranges 0; }
    location /gzip/ { alias ${root}/; add_header Content-Encoding gzip; }
    location /named/ { alias ${root}/; add_header Content-Disposition 'attachment; filename="from the server.mp4"'; }
    location ~ ^/moved/(.*)$ { return 302 /plain/$1; }
  }
}
`;
}
