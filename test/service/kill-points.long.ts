import { INPUT_PHASES } from '#operations/operation.ts';
import { testKills } from './kill-at-phase.ts';

/** Lists the phases of media that is signed as it is: nothing is packaged before. */
const WITHOUT_PACKAGING = INPUT_PHASES.filter((phase) => phase !== 'packaged');

// Those that kill-points.test.ts leaves out.
testKills({
  signFile: WITHOUT_PACKAGING.filter((phase) => phase !== 'sealed'),
  signPublication: WITHOUT_PACKAGING.filter((phase) => phase !== 'signed'),
  packageMedia: ['staged', 'delivered'],
  // Segments are signed from "staged" on.
  packageAndSign: INPUT_PHASES.filter((phase) => phase !== 'staged'),
});
