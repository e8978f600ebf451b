import { testMatrix, testPageForEveryName } from './matrix.ts';

testMatrix(
  [
    ['local', 'local'],
    ['HTTP', 's3'],
    ['S3', 'local'],
  ],
  ['local', 'HTTP', 'S3'],
);
testPageForEveryName();
