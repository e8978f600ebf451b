import { testKills } from './kill-at-phase.ts';

testKills({ signFile: ['sealed'], signPublication: [], packageMedia: ['packaged'], packageAndSign: [] });
