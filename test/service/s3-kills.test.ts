import { testS3Kills } from './s3-kill-at-phase.ts';

testS3Kills([[false, ['copied']]]);
