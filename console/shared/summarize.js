// @ts-nocheck
// Written by "npm run docs" from src/operations/verification/summarize.ts: change that.
/** Failures that say that the media was changed. */
const MEDIA_CHANGED = /^assertion\.(?:dataHash|bmffHash|boxesHash|collectionHash)\.mismatch$/;
/** The signature covers a part of the media only. */
const EXTRA_EXCLUSIONS = /\.additionalExclusionsPresent$/;
/** The code of a file that players may read as text. */
export const TEXT_CODE = 'com.attestream.file.text';
/** The code of a file that links to other files. */
export const LINKS_CODE = 'com.attestream.file.links';
/** The newer reader's word for a signature without revocation data. */
const OCSP_SKIPPED = 'signingCredential.ocsp.skipped';
/** Failures of the signature itself. */
const SIGNATURE_FAILED = /^claimSignature\./;

/**
 * Returns the verdict in a few sentences; `media` is said of media that were not judged as a whole, as by a player, which knows what it
 * loads. Browsers run this module too (`scripts/console-modules.ts`), so it
 * imports types only.
 */
export function summarize(verification                               , media         )         {
  const { state, codes, trust_list: list } = verification;
  switch (state) {
    case 'none':
      return 'No provenance information.';
    case 'trusted':
      return accepted(verification, media ?? 'Unchanged', `who is on ${list ?? 'a trust list of this service'}`);
    case 'valid':
      return accepted(verification, media ?? 'Unchanged since signing', NO_LIST);
    case 'invalid':
      return reasonOf(codes);
  }
}

/** Returns the sentences about an asset that nothing speaks against. */
function accepted(verification                               , ofFile        , listed        )         {
  const { codes, manifests } = verification;
  return [
    `${unchanged(ofFile, verification)}. ${signedBy(verification, listed)}`,
    leftOpen(verification),
    namedFiles(codes),
    signedFindings(verification),
    unknownNames(verification),
    severalSigners(verification),
    readAlone(verification),
    invalidIngredients(manifests),
    missingProofs(verification),
  ].join('');
}

const NO_LIST = 'who is on no trust list that this service knows';
const PUBLISHER = 'cawg.publisher';

/** Returns sentences about the signer, and about who else vouches for the active manifest. */
function signedBy({ manifests: [active] }                                 , listed        )         {
  const signer = signerOf(active);
  const identities = active?.identity_assertions ?? [];
  const known = identities.find(({ state, roles }) => state === 'trusted' && roles.includes(PUBLISHER));
  const others = identities.filter((identity) => identity !== known).map((identity) => ` ${identityInWords(identity)}`);
  if (known !== undefined) {
    const publisher = `Published by ${holderOf(known)}, who is on ${known.trust_list ?? 'a list of publishers'}`;
    return `${publisher}, and signed by ${signer}, ${listed}.${others.join('')}`;
  }
  const alone =
    listed === NO_LIST ? `${signer} is on no trust list that this service knows.` : `Signed by ${signer}, ${listed}.`;
  return `${alone}${others.join('')}`;
}

function identityInWords(identity                  )         {
  const { state, kind, roles, issuer, failures = [], trust_list: list } = identity;
  const part = roles.includes(PUBLISHER) ? 'its publisher' : 'who vouches for it';
  switch (state) {
    case 'trusted':
      return `${holderOf(identity)}, who is on ${list ?? 'a list of publishers'}, vouches for it${roles.length === 0 ? '' : ` (${roles.map(quoted).join(', ')})`}.`;
    case 'valid':
      return `It names ${holderOf(identity)} as ${roles.includes(PUBLISHER) ? 'its publisher' : 'vouching for it'}, who is on no list of publishers that this service knows.`;
    case 'invalid':
      return `The identity of ${part} does not verify (${failures.join(', ')}): nobody vouches for it.`;
    case 'unverified': {
      if (kind !== 'x509')
        return `It states an identity${issuer === undefined ? '' : ` by ${quoted(issuer)}`}, which was not verified.`;
      return `The identity of ${part} could not be verified${failures.length === 0 ? '' : ` (${failures.join(', ')})`}.`;
    }
  }
}

function holderOf({ name, organization }                  )         {
  const known = organization ?? name;
  return known === undefined ? 'somebody without a name' : quoted(known);
}

const NOT_COVERED = 'names, languages, text and the choice of renditions are not covered';

/** Returns what was compared of a publication, as a sentence without its full stop. */
function compared({ presentation, entries, deviations, first }                                          )         {
  switch (presentation) {
    case 'as_signed': {
      const { unsigned = 0 } = deviations;
      if (unsigned === 0) return 'Unchanged: media, playlists, text and pictures are as they were signed';
      const name = first.find(({ kind, file }) => kind === 'unsigned' && file !== undefined)?.file;
      const named = name === undefined ? '' : `, such as ${quoted(name)}`;
      return `Playlists, and the media, text and pictures under the signature, are as they were signed. The playlists also lead to ${unsigned === 1 ? 'one part' : `${unsigned} parts`} that nobody signed${named}`;
    }
    case 'equivalent': {
      const offers = entries.map(quoted).join(' and ');
      return `Every signed fragment of what ${offers} offer${entries.length === 1 ? 's' : ''} plays once and in order. The playlists are not the signed ones: ${NOT_COVERED}`;
    }
    case 'changed':
      return 'Media unchanged. The playlists are not the signed ones';
    case 'not_signed':
      return `Media unchanged. Nobody signed the playlists: ${NOT_COVERED}`;
  }
}

/** Returns sentences about what playlists that nobody signed leave open; an empty text for none. */
function leftOpen({ publication }                                   )         {
  const alone = publication?.rendition_alone?.map((entry) => ` ${quoted(entry)} is one rendition alone.`) ?? [];
  const unordered = publication?.order_unknown?.map(
    (playlist) =>
      ` It cannot be known in which order ${quoted(playlist)} should play the media under its different init segments, nor whether it plays all of them.`,
  );
  const count = publication?.manifests;
  const apart =
    count === undefined ? '' : ` It has ${count} manifests, and nobody signed that what they sign belongs together.`;
  const untimed = publication?.times_unknown;
  const unknown =
    untimed === undefined
      ? ''
      : ` ${untimed} fragments do not say when they play: playlists may cut them or show them at another time.`;
  const left = publication?.renditions_not_offered;
  const unoffered = left === undefined ? '' : ` The chosen entries leave out ${left} of the signed renditions.`;
  const names = publication?.playlists_absent?.map(quoted) ?? [];
  const absent = names.length === 0 ? '' : ` Signed with it, and not found here: ${names.join(', ')}.`;
  return [...alone, ...(unordered ?? []), unknown, unoffered, apart, absent].join('');
}

function unchanged(ofFile        , { codes, publication }                               )         {
  const words = publication === undefined ? ofFile : compared(publication);
  const isPartly = codes.some(({ code, ingredient }) => EXTRA_EXCLUSIONS.test(code) && ingredient !== true);
  return isPartly ? `${words} as far as the signature covers it: it leaves out parts of the media` : words;
}

/** Returns a sentence about a file that is text or links to others; an empty text for any other. */
function namedFiles(codes                       )         {
  const found = codes.find(({ code, ingredient }) => [TEXT_CODE, LINKS_CODE].includes(code) && ingredient !== true);
  return found === undefined ? '' : ` ${found.explanation}`;
}

/** Returns a sentence about what of a publication was no media under the manifest when it was signed; an empty text for none. */
function signedFindings({ publication }                                   )         {
  const others = Object.entries(publication?.deviations ?? {}).filter(([kind]) => kind !== 'unsigned');
  const told = others.map(([kind, count]) => `${count} ${kind}`);
  return told.length === 0 ? '' : ` It was signed with these findings: ${told.join(', ')}.`;
}

/** Returns a sentence about names in playlists that this service does not know; an empty text for none. */
function unknownNames({ publication }                                   )         {
  const [first, ...others] = publication?.unknown_names ?? [];
  if (first === undefined) return '';
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return ` This service does not know ${quoted(first.name)} (line ${first.line} of ${quoted(first.file)}${more}).`;
}

/** Returns a sentence about a publication that is not of one signer alone; an empty text for any other. */
function severalSigners({ publication }                                   )         {
  const signers = publication?.signers?.map(quoted);
  return signers === undefined ? '' : ` Its renditions are of several signers: ${signers.join(', ')}.`;
}

/** Returns a sentence about fragments that the official reader was not given; an empty text where there are none. */
function readAlone({ publication }                                   )         {
  const count = publication?.manifests_read_alone;
  if (count === undefined) return '';
  const manifests = count === 1 ? 'one manifest' : `${count} manifests`;
  return ` Under ${manifests} the official reader read no fragment, because all have more than 64 MiB: this service alone compared them.`;
}

/**
 * Returns a sentence about ingredients that were not valid when they were added, anywhere in the chain; an empty
 * text for none.
 */
function invalidIngredients(manifests                           )         {
  const invalid = manifests.flatMap(({ ingredients }) => ingredients).filter(({ state }) => state === 'invalid');
  const title = invalid.find((ingredient) => ingredient.title !== undefined)?.title;
  if (invalid.length === 0) return '';
  if (invalid.length > 1)
    return ` Ingredients were not valid when they were added${title === undefined ? '' : `, such as ${quoted(title)}`}.`;
  return ` ${title === undefined ? 'An ingredient' : `The ingredient ${quoted(title)}`} was not valid when it was added.`;
}

const UNKNOWN_AUTHORITY =
  ' The time-stamp is of an authority on no trust list that this service knows: the time of signing is not proven.';

/** Returns sentences about a time-stamp or revocation data that is not there, or proves nothing; an empty text for none. */
function missingProofs({ codes, manifests: [active] }                               )         {
  const { status, problem } = active?.revocation ?? {};
  const isSkipped = codes.some(({ code, ingredient }) => code === OCSP_SKIPPED && ingredient !== true);
  const hasNoStatus = status === 'none' ? problem === undefined : status === undefined && isSkipped;
  const missing = [
    ...(active?.time_stamp === undefined ? ['no time-stamp'] : []),
    ...(hasNoStatus ? ['no revocation data'] : []),
  ];
  return [
    ...(active?.time_stamp?.trusted === false ? [UNKNOWN_AUTHORITY] : []),
    ...(missing.length > 0 ? [` There is ${missing.join(' and ')}.`] : []),
    ...(problem !== undefined ? [` The revocation data cannot be used: ${problem}.`] : []),
    ...(status === 'unknown' ? [' The authority of its certificate does not know whether it is revoked.'] : []),
  ].join('');
}

/** Characters that end a sentence, or have it shown in another order. */
const UNSHOWN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu;

/** Returns a name that anybody may have chosen in quotation marks, none of which it ends itself. */
function quoted(name        )         {
  return `"${name.replaceAll('"', "'").replace(UNSHOWN, ' ')}"`;
}

function signerOf(active                                               )         {
  const { name, organization, development } = active?.signer ?? {};
  const known = organization ?? name;
  const shown = known === undefined ? 'a signer without a name' : quoted(known);
  return development ? `${shown} (development identity)` : shown;
}

function reasonOf(codes                       )         {
  const failures = codes.filter(
    ({ code, kind, ingredient }) => kind === 'failure' && ingredient !== true && !code.startsWith('cawg.'),
  );
  if (failures.some(({ code }) => MEDIA_CHANGED.test(code))) return 'Changed after signing.';
  if (failures.some(({ code }) => SIGNATURE_FAILED.test(code))) return 'Signature does not verify.';
  const [failure] = failures.filter(({ code }) => code !== 'signingCredential.untrusted');
  if (failure?.code === TEXT_CODE) return failure.explanation;
  return failure === undefined
    ? 'The manifest could not be validated completely.'
    : `The manifest is not valid. ${failure.explanation}`;
}

/** Returns what was changed in a sentence, and where it begins. */
export function summarizeDeviations({
  deviations,
  first,
}                                                       )         {
  const told = Object.entries(deviations).map(([kind, count]) => `${count} ${kind}`);
  // Nobody knows whether files that a signed text names were changed.
  const changes = first.filter(({ kind, part }) => kind !== 'unsigned' || part !== 'files');
  const [earliest] = changes.toSorted((one, other) => Number(isOfPlaylists(one)) - Number(isOfPlaylists(other)));
  if (earliest === undefined) return 'Changed after signing.';
  if (isOfPlaylists(earliest)) return summarizePlaylists(changes.filter(isOfPlaylists));
  const { part, file, rendition, index, signed_index: signed, time_seconds: time } = earliest;
  const at = time === undefined ? '' : `, ${clockTime(time)} into the programme`;
  const position = index ?? signed;
  if (part === 'rendition') return `Changed after signing: ${told.join(', ')}. A signed rendition is in no playlist.`;
  const what = `${part}${position === undefined ? '' : ` ${position}`}${file === undefined ? '' : ` (${quoted(file)})`}`;
  const where = rendition === undefined || part !== 'fragment' ? '' : ` of the rendition ${quoted(rendition)}`;
  return `Changed after signing: ${told.join(', ')}. The first is ${what}${where}${at}.`;
}

function isOfPlaylists({ part }                                          )          {
  return part === 'playlist' || part === 'files';
}

/** Returns how the playlists differ from the signed ones, where all media are as they were signed. */
function summarizePlaylists(differences                                  )         {
  const [difference, ...others] = differences;
  const more = others.length === 0 ? '' : ` Further differences: ${others.length}.`;
  const isOfGrammar = differences.some(({ problem }) => problem !== undefined);
  const hint = isOfGrammar
    ? ''
    : ' Where your origin rewrites playlists, ask with `params.presentation: "equivalent"`.';
  return `Not as signed: ${difference === undefined ? 'the playlists were changed' : differenceInWords(difference)}.${more}${hint}`;
}

function differenceInWords({ part, kind, file, line, problem }                                          )         {
  if (problem !== undefined) return `line ${line} of ${quoted(file ?? '')}: ${problem}`;
  if (file === undefined) return 'the playlists, or the files that they name, are not the signed ones';
  if (part === 'files') return `files that ${quoted(file)} names were changed`;
  if (kind === 'added') return `${quoted(file)} was added`;
  if (kind === 'unreadable') return `${quoted(file)} is there, and the listing of its folder lacks it`;
  return kind === 'missing' ? `${quoted(file)} is missing` : `${quoted(file)} was changed`;
}

/** Returns a time in the programme as hours, minutes and seconds. */
function clockTime(seconds        )         {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}
