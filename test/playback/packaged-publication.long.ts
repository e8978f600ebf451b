import { testPackagedPublication, testTurnedFilm } from './packaged-publication.ts';

testPackagedPublication('plain');
testTurnedFilm();
