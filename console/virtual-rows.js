import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { html } from './html.js';

/** Rows beyond each edge of the window, and the steps in which the rendered range moves. */
const MARGIN_ROWS = 12;
const STEP_ROWS = 6;

/** Rows before the end at which more are loaded. */
const NEAR_END_ROWS = 60;

/** Until a row was measured. */
const ASSUMED_HEIGHT_PX = 56;

/**
 * Renders the rows of a table that are in view, and space for the others. All rows have the same height, which the style sheet
 * gives them.
 * @param {{ ids: readonly string[], row: (id: string, index: number) => unknown, onView?: (first: string | undefined) => void, onNearEnd?: () => void }} props `onView` is told the first row in view, `onNearEnd` that few rows are left
 */
export function VirtualRows({ ids, row, onView, onNearEnd }) {
  const body = useRef(/** @type {HTMLElement | null} */ (null));
  const height = useRef(ASSUMED_HEIGHT_PX);
  const range = useSignal({ start: 0, end: 2 * MARGIN_ROWS });
  const look = () => {
    const top = body.current?.getBoundingClientRect().top ?? 0;
    const first = Math.max(0, Math.floor(-top / height.current));
    const start = Math.max(0, Math.floor((first - MARGIN_ROWS) / STEP_ROWS) * STEP_ROWS);
    const end = start + Math.ceil(innerHeight / height.current / STEP_ROWS) * STEP_ROWS + 2 * MARGIN_ROWS + STEP_ROWS;
    if (start !== range.value.start || end !== range.value.end) range.value = { start, end };
    onView?.(ids[first]);
    if (end + NEAR_END_ROWS > ids.length) onNearEnd?.();
  };
  const latestLook = useRef(look);
  latestLook.current = look;
  useLayoutEffect(() => {
    height.current = body.current?.querySelector('tr:not(.space)')?.getBoundingClientRect().height ?? height.current;
    latestLook.current();
  });
  useEffect(() => {
    const onScroll = () => latestLook.current();
    addEventListener('scroll', onScroll, { passive: true });
    addEventListener('resize', onScroll);
    return () => {
      removeEventListener('scroll', onScroll);
      removeEventListener('resize', onScroll);
    };
  }, []);
  const { start, end } = range.value;
  const above = Math.min(start, ids.length);
  const below = Math.max(0, ids.length - end);
  return html`<tbody role="rowgroup" ref=${body}>
    <${Space} key="above" heightPx=${above * height.current} />
    ${ids.slice(start, end).map((id, index) => row(id, start + index))}
    <${Space} key="below" heightPx=${below * height.current} />
  </tbody>`;
}

/** @param {{ heightPx: number }} props */
function Space({ heightPx }) {
  return heightPx > 0 && html`<tr class="space" aria-hidden="true" style=${{ height: `${heightPx}px` }}></tr>`;
}
