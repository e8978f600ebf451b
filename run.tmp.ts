import { SeededRandom } from './test/support/seeded-random.ts';
import { playerSeeds, mutatePlaylist } from './test/fuzz/player-targets.ts';
import { compareReadings } from './test/fuzz/players/compare-readings.ts';
import { writeFileSync } from 'node:fs';
const [seed, count, show='60', kind='.'] = process.argv.slice(2);
const seeds = playerSeeds().filter(s => new RegExp(kind).test(String(s)));
let accepted=0, read=0, findings=0; const kinds=new Map<string, number>();
for (let i=0;i<Number(count);i++){ const r=new SeededRandom(Number(seed),i); const s=r.pick(seeds); const m=mutatePlaylist(s,r,r.pick(seeds)).toString('utf8');
 let c; try { c=await compareReadings(m);} catch(e){ console.log(i,'THROWN',(e as Error).stack); continue; }
 if(c.isAccepted) accepted++; read+=c.readBy.length;
 if(c.differences.length){ findings++; for(const d of c.differences) kinds.set(d.split(' ')[0]!, (kinds.get(d.split(' ')[0]!)??0)+1);
  if(findings<=Number(show)){ const a=new Set(String(s).split('\n')); const b=m.split('\n'); const bs=new Set(b); console.log(`#${i}`, c.differences.join('\n   ').slice(0,500)); console.log('   +', b.filter(l=>!a.has(l)).map(l=>JSON.stringify(l.slice(0,220))).slice(0,6).join('\n     '), '\n   -', [...a].filter(l=>!bs.has(l)).map(l=>JSON.stringify(l.slice(0,160))).slice(0,4).join('\n     ')); writeFileSync(`/tmp/w/f-${i}`, m);} } }
console.log({count, accepted, read, findings, kinds: Object.fromEntries(kinds)});
