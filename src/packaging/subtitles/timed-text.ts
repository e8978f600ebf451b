import { XMLValidator } from 'fast-xml-parser';
import { AppError } from '#errors/app-error.ts';
import { DOCUMENT_TYPE, decodeEntities, makeXmlParser, type XmlNode } from '#formats/xml.ts';
import { type Cue, decodeText, makeCue, type Subtitles } from './web-vtt.ts';

/** Depth limit of elements: documents nest `tt`, `body`, `div`, `p` and `span`, of which the last may nest in itself. */
const MAX_DEPTH = 64;
/** Default frame rate of a document (TTML2 §7.2). */
const DEFAULT_FRAME_RATE = 30;

const parser = makeXmlParser({ maxNestedTags: MAX_DEPTH, trimValues: false });

/** Time in which something is shown, in seconds. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Frames and ticks per second of a document. */
interface Rates {
  readonly frames: number;
  readonly ticks: number;
}

/**
 * Reads subtitles of TTML (W3C Timed Text Markup Language 2), such as IMSC and EBU-TT-D: text, lines and times. Position
 * and style are not read. Throws `SUBTITLES_MALFORMED`.
 */
export function parseTimedText(bytes: Uint8Array, name: string): Subtitles {
  const root = rootOf(decodeText(bytes), name);
  const rates = ratesOf(root[':@'] ?? {});
  const cues: Cue[] = [];
  for (const body of childrenOf(root).filter((node) => nameOf(node) === 'body')) {
    addCues(body, { start: 0, end: Number.POSITIVE_INFINITY }, rates, cues);
  }
  return { head: [], cues: cues.sort((first, second) => first.startSeconds - second.startSeconds), zeroSeconds: null };
}

function rootOf(text: string, name: string): XmlNode {
  const malformed = (problem: string) => new AppError('SUBTITLES_MALFORMED', { name, problem });
  if (DOCUMENT_TYPE.test(text)) throw malformed('it declares a document type, which is not accepted');
  const verdict = XMLValidator.validate(text.replace(/^\uFEFF/, ''));
  if (verdict !== true) throw malformed(`it is no well-formed XML (line ${verdict.err.line})`);
  try {
    const root = (parser.parse(text) as XmlNode[]).find((node) => nameOf(node) === 'tt');
    if (root !== undefined) return root;
  } catch {
    throw malformed(`it nests more than ${MAX_DEPTH} elements deep`);
  }
  throw malformed('its outermost element is not "tt"');
}

function nameOf(node: XmlNode): string {
  return Object.keys(node).find((key) => key !== ':@') ?? '';
}

function childrenOf(node: XmlNode): readonly XmlNode[] {
  const content = node[nameOf(node)];
  return Array.isArray(content) ? (content as XmlNode[]) : [];
}

/** Adds the cues of an element. Its times count from the start of its parent (TTML2 §12.2.1), and end with it. */
function addCues(node: XmlNode, around: Span, rates: Rates, cues: Cue[]): void {
  const name = nameOf(node);
  const attributes = node[':@'] ?? {};
  const shown = spanOf(attributes, around, rates);
  const isText = name === 'p' || (name === 'span' && isTimed(node));
  if (!isText || childrenOf(node).some(isTimed)) {
    for (const child of childrenOf(node)) if (!nameOf(child).startsWith('#')) addCues(child, shown, rates, cues);
    return;
  }
  if (!Number.isFinite(shown.end)) return;
  const lines = textOf(node)
    .split('\n')
    .map((line) => line.trim());
  const cue = makeCue({ startSeconds: shown.start, endSeconds: shown.end, settings: '', lines });
  if (cue !== null) cues.push(cue);
}

function isTimed(node: XmlNode): boolean {
  const { begin, end, dur } = node[':@'] ?? {};
  return begin !== undefined || end !== undefined || dur !== undefined;
}

function spanOf({ begin, end, dur }: Readonly<Record<string, string>>, around: Span, rates: Rates): Span {
  const start = around.start + (secondsOf(begin, rates) ?? 0);
  const ends = [secondsOf(end, rates), secondsOf(dur, rates)];
  const stated = [around.end, around.start + (ends[0] ?? around.end), start + (ends[1] ?? around.end)];
  return { start, end: Math.min(...stated) };
}

const CLOCK = /^(\d{2,}):(\d\d):(\d\d)(?:(\.\d{1,9})|:(\d{2,6})(?:\.\d+)?)?$/;
const OFFSET = /^(\d{1,15}(?:\.\d{1,9})?)(h|ms|m|s|f|t)$/;

/** Returns a time expression in seconds (TTML2 §12.3.1); null where there is none, or one of another kind. */
function secondsOf(time: string | undefined, { frames, ticks }: Rates): number | null {
  const clock = CLOCK.exec(time?.trim() ?? '');
  if (clock !== null) {
    const [, hours, minutes, seconds, fraction = '0', frame = '0'] = clock;
    const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return whole + Number(fraction) + Number(frame) / frames;
  }
  const offset = OFFSET.exec(time?.trim() ?? '');
  if (offset === null) return null;
  const units: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001, f: 1 / frames, t: 1 / ticks };
  return Number(offset[1]) * (units[offset[2] ?? ''] ?? 0);
}

function ratesOf({ frameRate, frameRateMultiplier = '1 1', tickRate }: Readonly<Record<string, string>>): Rates {
  const [numerator = 1, denominator = 1] = frameRateMultiplier.split(/[ :]/).map(Number);
  const frames = (Number(frameRate) || DEFAULT_FRAME_RATE) * (numerator / denominator || 1);
  return { frames, ticks: Number(tickRate) || (frameRate === undefined ? 1 : frames) };
}

/** Returns the text of an element, with a line break for each `br`; other white space collapses, as by default. */
function textOf(node: XmlNode): string {
  return childrenOf(node)
    .map((child) => {
      const name = nameOf(child);
      if (name === '#text') return asWebVtt(String(child['#text'])).replace(/\s+/g, ' ');
      return name === 'br' ? '\n' : name === 'span' ? textOf(child) : '';
    })
    .join('');
}

/** Replaces the entities of XML by those of WebVTT. */
function asWebVtt(text: string): string {
  const plain = decodeEntities(text);
  return plain.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
