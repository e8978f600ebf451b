import { testS3Kills } from './upload-kill-at-phase.ts';

testS3Kills([
  [false, ['staged', 'copied']],
  [true, ['copied', 'sealed', 'verified', 'delivered']],
]);
