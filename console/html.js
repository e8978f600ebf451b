import htm from 'htm';
import { h } from 'preact';

/** Renders markup as text would be written: values are escaped by Preact, so no name is ever markup. */
export const html = htm.bind(h);
