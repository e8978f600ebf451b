import { entry } from './entry.ts';

export const configErrors = {
};
