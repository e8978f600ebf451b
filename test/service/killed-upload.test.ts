import { testS3Kills } from './upload-kill-at-phase.ts';

testS3Kills([[false, ['copied']]]);
