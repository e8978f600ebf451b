import { entry } from './entry.ts';

export const requestErrors = {
};
