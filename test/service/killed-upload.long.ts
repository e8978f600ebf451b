import { testS3Kills } from './upload-kill-at-phase.ts';

// Those that killed-upload.test.ts leaves out.
testS3Kills([
  [false, ['staged']],
  [true, ['copied', 'sealed', 'verified', 'delivered']],
]);
