import { z } from 'zod';
import { isLanguage, namespacedLabel, text } from './request.ts';

const IPTC_SCHEME = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
const C2PA_SCHEME = 'http://c2pa.org/digitalsourcetype/';

/** The terms of IPTC's vocabulary that are not retired, and those that C2PA adds (C2PA 2.4 §18.15.4.5). */
const SCHEMES: ReadonlyMap<string, string> = new Map([
  ...schemeOf(IPTC_SCHEME, [
    'digitalCapture',
    'computationalCapture',
    'compositeCapture',
    'screenCapture',
    'negativeFilm',
    'positiveFilm',
    'print',
    'digitalCreation',
    'dataDrivenMedia',
    'algorithmicMedia',
    'algorithmicallyEnhanced',
    'humanEdits',
    'virtualRecording',
    'composite',
    'compositeSynthetic',
    'compositeWithTrainedAlgorithmicMedia',
    'trainedAlgorithmicMedia',
  ]),
  ...schemeOf(C2PA_SCHEME, ['empty', 'trainedAlgorithmicData']),
]);

function schemeOf(scheme: string, terms: readonly string[]): [string, string][] {
  return terms.map((term) => [term, scheme]);
}

const TERMS = [...SCHEMES.keys()];
const TERM_LIST = `${TERMS.join(', ')}; or its address, such as ${digitalSourceTypeUri('digitalCapture')}`;

/** A term, or its address. */
export const digitalSourceType = z
  .string()
  .refine(
    (value) => TERMS.some((term) => value === term || value === digitalSourceTypeUri(term)),
    `must be a term of IPTC or C2PA: ${TERM_LIST}`,
  )
  .describe(`How media came to be: a term of IPTC or C2PA: ${TERM_LIST}.`)
  .meta({ examples: ['digitalCapture'] });

/** Returns the address of a term that `digitalSourceType` accepts. */
export function digitalSourceTypeUri(term: string): string {
  return `${SCHEMES.get(term) ?? ''}${term}`;
}

/** Actions of one request. Every output carries them. */
const MAX_ACTIONS = 1_000;

/** The actions of C2PA 2.4 (table 8) that a request may state: they need no ingredient, and are not deprecated. */
const STATABLE_ACTIONS = [
  'c2pa.addedText',
  'c2pa.adjustedColor',
  'c2pa.changedSpeed',
  'c2pa.converted',
  'c2pa.cropped',
  'c2pa.deleted',
  'c2pa.drawing',
  'c2pa.dubbed',
  'c2pa.edited',
  'c2pa.edited.metadata',
  'c2pa.enhanced',
  'c2pa.filtered',
  'c2pa.mastered',
  'c2pa.orientation',
  'c2pa.published',
  'c2pa.remixed',
  'c2pa.repackaged',
  'c2pa.resized',
  'c2pa.resized.proportional',
  'c2pa.transcoded',
  'c2pa.translated',
  'c2pa.trimmed',
  'c2pa.unknown',
  'c2pa.watermarked.bound',
  'c2pa.watermarked.unbound',
] as const;

/** Why other actions of the specification are refused, as the end of a sentence. */
const REFUSALS: ReadonlyMap<string, string> = new Map([
  ...Object.entries({
    'c2pa.created': 'this service states as the first action. Give "digital_source_type" instead',
    'c2pa.opened': 'this service states as the first action, about the source or "parent"',
    'c2pa.placed': 'needs a component, which a request cannot give; this service states it where there is one',
    'c2pa.mixed': 'needs components that were placed before, which a request cannot give',
    'c2pa.removed': 'needs a component of another manifest, which a request cannot give',
    'c2pa.redacted': 'needs an assertion that was redacted from an ingredient, and this service redacts none',
    'c2pa.color_adjustments': 'is deprecated. Use "c2pa.adjustedColor"',
    'c2pa.watermarked': 'is deprecated. Use "c2pa.watermarked.bound" or "c2pa.watermarked.unbound"',
  }),
  ...['copied', 'formatted', 'managed', 'printed', 'produced', 'saved', 'version_updated'].map(
    (name): [string, string] => [`c2pa.${name}`, 'is deprecated'],
  ),
]);

const STANDARD_NAMESPACE = /^(?:c2pa|cawg|font)\./i;

/** Returns why a request may not state an action; null where it may. */
function actionProblem(action: string): string | null {
  if (STATABLE_ACTIONS.some((statable) => statable === action)) return null;
  if (STANDARD_NAMESPACE.test(action)) {
    const refusal = REFUSALS.get(action);
    if (refusal !== undefined) return `is "${action}", which ${refusal}`;
    return `is not one of the actions that a request may state: ${STATABLE_ACTIONS.join(', ')}, or one of your own, such as com.example.graded`;
  }
  return namespacedLabel.test(action) ? null : 'must have the form of a domain in reverse, such as com.example.graded';
}

/** Languages of `c2pa.translated` (C2PA 2.4 §18.15.4.7). */
const LANGUAGE_PARAMETERS = ['sourceLanguage', 'targetLanguage'] as const;

const language = z.string().refine(isLanguage, 'must be a language tag of BCP 47, such as "en" or "pt-BR"');

/** Parameters of one action. */
const MAX_PARAMETERS = 100;

const standardParameters = {
  sourceLanguage: language.optional(),
  targetLanguage: language.optional(),
  multipleInstances: z.boolean().optional(),
};

/** Stops at the first problem: a body may hold 100,000 names. */
const parameters = z.looseObject(standardParameters).superRefine((given, context) => {
  const names = Object.keys(given);
  if (names.length > MAX_PARAMETERS) {
    return context.addIssue({ code: 'custom', message: `holds more than ${MAX_PARAMETERS} parameters` });
  }
  const unfit = names.find((name) => !Object.hasOwn(standardParameters, name) && !isOwnName(name));
  if (unfit === undefined) return;
  const message = `cannot be stated. Parameters are ${Object.keys(standardParameters).join(', ')}, and those under a domain of your own in reverse, such as com.example.strength`;
  context.addIssue({ code: 'custom', path: [unfit], message });
});

function isOwnName(name: string): boolean {
  return namespacedLabel.test(name) && !STANDARD_NAMESPACE.test(name);
}

const softwareAgent = z.union(
  [text, z.strictObject({ name: text, version: text.optional(), operating_system: text.optional() })],
  'must be a name, or an object with a name and, if known, version and operating_system',
);

export const apiAction = z
  .strictObject({
    action: text
      .superRefine((action, context) => {
        const message = actionProblem(action);
        if (message !== null) context.addIssue({ code: 'custom', message });
      })
      .describe(`One of ${STATABLE_ACTIONS.join(', ')}; or an action of your own domain in reverse.`),
    when: z.iso.datetime({ offset: true, error: 'must be a time such as "2026-11-21T09:30:00Z"' }).optional(),
    description: text.optional(),
    digital_source_type: digitalSourceType
      .optional()
      .describe(
        "How what the action added came to be. C2PA's conformance programme asks for it with every action of the specification that people may notice.",
      ),
    software_agent: softwareAgent.optional().describe('The program or device that performed the action.'),
    parameters: parameters
      .optional()
      .describe(
        '`sourceLanguage` and `targetLanguage` (BCP 47; `c2pa.translated` needs both), `multipleInstances` (a boolean), and any JSON value under a name of your own domain in reverse.',
      ),
  })
  .superRefine(({ action, parameters: given = {} }, context) => {
    const missing = LANGUAGE_PARAMETERS.find((name) => action === 'c2pa.translated' && given[name] === undefined);
    if (missing === undefined) return;
    context.addIssue({
      code: 'custom',
      path: ['parameters', missing],
      message: 'is missing: c2pa.translated needs it',
    });
  })
  .meta({
    id: 'ApiAction',
    description: 'An action of the caller on the media, before it was given to this service.',
    examples: [
      {
        action: 'c2pa.adjustedColor',
        when: '2026-11-21T09:30:00Z',
        digital_source_type: 'humanEdits',
        software_agent: { name: 'Example Grade', version: '4.2' },
      },
    ],
  });
export type ApiAction = z.infer<typeof apiAction>;

export const apiActions = z.array(apiAction).max(MAX_ACTIONS);
