/** What the identifiers of a template stand for in one representation (ISO/IEC 23009-1, §5.3.9.4.4). */
export interface TemplateValues {
  readonly RepresentationID: string;
  readonly Bandwidth: string;
  readonly Number?: bigint;
  readonly Time?: bigint;
}

/** `%0[width]d` beyond this many digits is nobody's file name. */
const TEMPLATE_WIDTH_MAX = 32;

/** Fills a segment template, or undefined where it is malformed or asks for a value that is not there. */
export function fillTemplate(template: string, values: TemplateValues): string | undefined {
  let failed = false;
  const filled = template.replace(/\$([^$]*)\$/g, (_, identifier: string) => {
    const text = textOf(identifier, values);
    if (text === undefined) failed = true;
    return text ?? '';
  });
  return failed ? undefined : filled;
}

function textOf(identifier: string, values: TemplateValues): string | undefined {
  if (identifier === '') return '$';
  const match = /^(RepresentationID|Bandwidth|Number|Time)(?:%0(\d{1,3})d)?$/.exec(identifier);
  if (match === null) return undefined;
  const value = values[match[1] as keyof TemplateValues];
  const width = Number(match[2] ?? 1);
  return value === undefined || width > TEMPLATE_WIDTH_MAX ? undefined : String(value).padStart(width, '0');
}

/** Whether the template tells segments apart, by number or by time. */
export function isEnumerating(template: string): boolean {
  return /\$(?:Number|Time)(?:%0\d{1,3}d)?\$/.test(template);
}
