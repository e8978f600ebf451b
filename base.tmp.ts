import { readdirSync, readFileSync } from 'node:fs';
import { compareReadings } from './test/fuzz/players/compare-readings.ts';
const root='./test/fuzz/players/playlists';
for (const f of readdirSync(root,{recursive:true}) as string[]) { if(!/\.(m3u8|mpd)$/.test(f)) continue;
 const t=readFileSync(root+'/'+f,'utf8'); const c=await compareReadings(t); console.log(f,c.isAccepted,c.readBy.join(' '),c.differences.length); for(const d of c.differences) console.log(d.slice(0,2500)); }
