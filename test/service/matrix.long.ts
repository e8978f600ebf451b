import { testMatrix } from './matrix.ts';

testMatrix(
  [
    ['local', 's3'],
    ['HTTP', 'local'],
    ['HTTP without ranges', 'local'],
    ['HTTP without ranges', 's3'],
    ['S3', 's3'],
  ],
  ['HTTP without ranges'],
);
