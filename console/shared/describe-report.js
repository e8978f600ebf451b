// @ts-nocheck
// Written by "npm run docs" from src/provenance/describe-report.ts: change that.
import { algorithmName } from './algorithm-name.js';
import { describeAction, explanationOf } from './status-codes.js';
import {

  failuresIn,

  problemsIn,

  VALID_ASSET,

} from './validation-report.js';

/** Limits of a description: a manifest holds as much as its author likes. */

/** Limits of what a reader's report is described with, by the kind of description. */
const DESCRIPTION_LIMITS = {
  summary: { characters: 300, codes: 40, manifests: 10, entries: 20, data: 0 },
  detailed: { characters: 1000, codes: 100, manifests: 100, entries: 500, data: 4_000 },
  full: { characters: 10_000, codes: 10_000, manifests: 1000, entries: 10_000, data: 1_000_000 },
}                                                               ;

/** Size limit of a description in an answer, as JSON. A description that is larger is made again with tighter limits. */
const MAX_ANSWER_BYTES = { summary: 48 * 1024, detailed: 512 * 1024, full: 256 * 1024 * 1024 }         ;

/** The parts of a verification that a reader's report decides. */

/** The organisation of the development identity, which no list will ever hold. */
const DEVELOPMENT_ORGANIZATION = 'Attestream development identity';

/**
 * Describes the report of an official reader in plain words, within the limits of its kind. A manifest is valid only where
 * signature and hard binding were checked: a check that was not made is no failure to the reader.
 */
export function describeReport(report                , kind                                 )                    {
  let limits                    = DESCRIPTION_LIMITS[kind];
  let described = describeWithin(report, limits);
  while (jsonBytes(described) > MAX_ANSWER_BYTES[kind] && limits.entries > 1) {
    limits = tightened(limits);
    described = describeWithin(report, limits);
  }
  return described;
}

/** Returns the size of a value as JSON. The console runs this file in browsers, which have no Buffer. */
function jsonBytes(value         )         {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

function tightened({ characters, codes, manifests, entries, data }                   )                    {
  const half = (limit        , least        )         => Math.max(Math.floor(limit / 2), least);
  return {
    characters: half(characters, 80),
    codes: half(codes, 10),
    manifests: half(manifests, 1),
    entries: half(entries, 1),
    data: data < 100 ? 0 : half(data, 0),
  };
}

function describeWithin(report                , limits                   )                    {
  const codes = codesOf(report.validation_results, limits);
  const labels = chainOf(report);
  const shown = labels.slice(0, limits.manifests);
  const omitted = {
    ...(codes.length > limits.codes && { codes: codes.length - limits.codes }),
    ...(labels.length > shown.length && { manifests: labels.length - shown.length }),
  };
  return {
    state: stateOf(report),
    codes: codes.slice(0, limits.codes),
    manifests: shown.map((label) => describeManifest(label, report, limits)),
    ...(Object.keys(omitted).length > 0 && { omitted }),
  };
}

/** Returns the state of the active manifest, by the reader's verdict and the successes that have to be there. */
export function stateOf({ validation_results: results, validation_state: verdict }                )                    {
  if (verdict === 'Invalid' || problemsIn(results, VALID_ASSET).length > 0) return 'invalid';
  return verdict === 'Trusted' ? 'trusted' : 'valid';
}

export const KINDS = ['failure', 'informational', 'success']         ;

/** Returns the codes of a validation, failures first, each once for the asset and once for its ingredients. */
function codesOf(results                               , limits                   )                   {
  return KINDS.flatMap((kind) => {
    const ofIngredients = deltasIn(results).flatMap((findings) => findings[kind] ?? []);
    return [
      ...grouped(results?.activeManifest?.[kind] ?? [], kind, limits),
      ...grouped(ofIngredients, kind, limits).map((code) => ({ ...code, ingredient: true })),
    ];
  });
}

/** Returns the findings about ingredients that their manifests did not record when they were added. */
export function deltasIn(results                               )                      {
  return (results?.ingredientDeltas ?? []).map(({ validationDeltas }) => validationDeltas);
}

function grouped(
  findings                    ,
  kind                        ,
  { characters }                   ,
)                   {
  return [...Map.groupBy(findings, ({ code }) => code).values()].map((same) => codeOf(same, kind, characters));
}

/** Describes findings of one code, at least one, by the first of them. */
export function codeOf(same                    , kind                        , characters        )                 {
  const [{ code, url, explanation }] = same             ;
  return {
    code: cut(code, characters),
    kind,
    explanation: explanationOf(code) ?? cut(explanation ?? code, characters),
    count: same.length,
    ...(url !== undefined && { about: cut(url, characters) }),
  };
}

/** Returns the labels of the manifests in a chain, the active one first, each before its ingredients. */
function chainOf({ active_manifest: active, manifests }                )           {
  const chain = new Set        (active !== undefined && Object.hasOwn(manifests, active) ? [active] : []);
  for (const label of chain) {
    for (const { active_manifest: below } of manifests[label]?.ingredients ?? []) {
      if (below !== undefined && Object.hasOwn(manifests, below)) chain.add(below);
    }
  }
  return [...chain];
}

function describeManifest(label        , report                , limits                   )                   {
  const { characters, entries } = limits;
  const manifest = report.manifests[label] ?? {};
  const { title, assertions = [], ingredients = [] } = manifest;
  const actions = assertions.flatMap(actionsIn);
  const generator = generatorOf(manifest);
  const omitted = {
    ...(actions.length > entries && { actions: actions.length - entries }),
    ...(ingredients.length > entries && { ingredients: ingredients.length - entries }),
    ...(assertions.length > entries && { assertions: assertions.length - entries }),
  };
  return {
    label: cut(label, characters),
    ...texts({ title, generator }, characters),
    ...signatureOf(label, manifest, report, limits),
    actions: actions.slice(0, entries).map((action) => describedAction(action, characters)),
    ingredients: describedIngredients(ingredients, limits),
    assertions: assertions.slice(0, entries).map((assertion) => describedAssertion(assertion, limits)),
    ...(Object.keys(omitted).length > 0 && { omitted }),
  };
}

function generatorOf({ claim_generator_info: info, claim_generator: older }                  )                     {
  const [program] = info ?? [];
  if (program?.name === undefined) return older;
  return program.version === undefined ? program.name : `${program.name} ${program.version}`;
}

function signatureOf(
  label        ,
  { signature_info: info }                  ,
  { validation_results: results }                ,
  { characters }                   ,
)                                                  {
  if (info === undefined) return {};
  const { common_name: name, issuer: organization, alg, cert_serial_number: serial_number, time } = info;
  const algorithm = alg && algorithmName(alg);
  const signer = {
    ...texts({ name, organization, algorithm, serial_number }, characters),
    ...(organization === DEVELOPMENT_ORGANIZATION && { development: true          }),
  };
  if (time === undefined) return { signer };
  const own = [results?.activeManifest, ...deltasIn(results)]
    .flatMap((findings) => findings?.success ?? [])
    .filter(({ url }) => url?.includes(`/${label}/`));
  const authority = own.flatMap(({ code, explanation }) =>
    code === 'timeStamp.validated' ? (/: (.+)$/.exec(explanation ?? '')?.[1] ?? []) : [],
  )[0];
  const trusted = own.some(({ code }) => code === 'timeStamp.trusted');
  return { signer, time_stamp: { time: cut(time, characters), ...texts({ authority }, characters), trusted } };
}

function actionsIn({ label, data }                   )                                      {
  if (!label.startsWith('c2pa.actions')) return [];
  const { actions } = (data ?? {})                         ;
  return Array.isArray(actions) ? actions.filter((action) => typeof action === 'object' && action !== null) : [];
}

function describedAction(
  { action, when, softwareAgent, digitalSourceType, description }                                   ,
  characters        ,
)                                      {
  const name = typeof action === 'string' ? action : '';
  const agent = typeof softwareAgent === 'object' ? (softwareAgent                             )?.name : softwareAgent;
  const told = typeof description === 'string' ? `${describeAction(name)}: ${description}` : describeAction(name);
  return {
    action: cut(name, characters),
    description: cut(told, characters),
    ...texts({ when, software_agent: agent, digital_source_type: digitalSourceType }, characters),
  };
}

/** Describes ingredients up to the limit. If some are left out, those that are not valid come first. */
function describedIngredients(
  ingredients                               ,
  { characters, entries }                   ,
)                                  {
  const described = ingredients.map((ingredient) => describedIngredient(ingredient, characters));
  if (described.length <= entries) return described;
  const isInvalid = ({ state }                              )          => state === 'invalid';
  return [...described.filter(isInvalid), ...described.filter((each) => !isInvalid(each))].slice(0, entries);
}

function describedIngredient(
  ingredient                    ,
  characters        ,
)                                          {
  const { title, format, relationship = 'componentOf', active_manifest: manifest } = ingredient;
  const failures = ingredientFailures(ingredient).map((code) => cut(code, characters));
  return {
    ...texts({ title, media_type: format }, characters),
    relationship: cut(relationship, characters),
    ...texts({ manifest }, characters),
    state: ingredientState(ingredient, failures),
    ...(failures.length > 0 && { failures }),
  };
}

const MAX_INGREDIENT_FAILURES = 10;

function ingredientFailures({
  validation_results: results,
  validation_status: older = [],
}                    )           {
  const findings = results?.activeManifest ?? { success: [], informational: [], failure: older };
  return failuresIn(findings, VALID_ASSET).slice(0, MAX_INGREDIENT_FAILURES);
}

function ingredientState(
  { active_manifest: manifest, validation_results: results }                    ,
  failures                   ,
)                    {
  if (manifest === undefined) return 'none';
  if (failures.length > 0) return 'invalid';
  const isTrusted = results?.activeManifest?.success.some(({ code }) => code === 'signingCredential.trusted') ?? false;
  return isTrusted ? 'trusted' : 'valid';
}

function describedAssertion(
  { label, created = false, data }                   ,
  { characters, data: maxData }                   ,
)                                         {
  const fits = maxData > 0 && data !== undefined && JSON.stringify(data).length <= maxData;
  return { label: cut(label, characters), created, ...(fits && { data }) };
}

/** Returns those of some fields that are texts, each within the limit. */
export function texts                     (fields                                 , characters        ) {
  const given = Object.entries(fields).filter((entry)                          => typeof entry[1] === 'string');
  return Object.fromEntries(given.map(([name, text]) => [name, cut(text, characters)]))                            ;
}

/** Shortens a text, between characters, and makes it well-formed. */
export function cut(text        , characters        )         {
  if (text.length <= characters) return text.toWellFormed();
  return `${text.slice(0, characters - 1).toWellFormed()}…`;
}
