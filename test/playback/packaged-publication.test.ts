import { testPackagedPublication } from './packaged-publication.ts';

testPackagedPublication('signed');
