import { testS3Kills } from './s3-kill-at-phase.ts';

// Those that s3-kills.test.ts leaves out.
testS3Kills([
  [false, ['staged']],
  [true, ['copied', 'sealed', 'verified', 'delivered']],
]);
