import { z } from 'zod';

/** The verdicts on an input, the same in the API, the documentation and the console. */
export const verificationState = z
  .enum(['trusted', 'valid', 'invalid', 'none'])
  .describe(
    '`trusted`: unchanged, and its signer is on a trust list; `valid`: unchanged, and its signer is on no list that this service knows; `invalid`: changed after signing, or the signature does not verify; `none`: it carries no manifest.',
  );
export type VerificationState = z.infer<typeof verificationState>;

const omitted = z.int().min(0).exactOptional();
const label = z.string().describe('A label of `manifests`.');

export const validationCode = z
  .object({
    code: z
      .string()
      .describe(
        'A status code of C2PA, as the reader reports it; of fragments that it was not given, as this service finds it.',
      ),
    kind: z.enum(['success', 'informational', 'failure']),
    explanation: z
      .string()
      .describe(
        'What the code means, in plain words; for a code that this service does not know, what the reader says.',
      ),
    count: z.int().min(1).describe('How often it was reported.'),
    about: z
      .string()
      .exactOptional()
      .describe('The part of the manifest that it was reported about first (JUMBF URI).'),
    ingredient: z.boolean().exactOptional().describe('True where it is about the manifest of an ingredient.'),
  })
  .meta({ id: 'ValidationCode', description: 'One outcome of the validation.' });
export type ValidationCode = z.infer<typeof validationCode>;

export const verifiedAction = z
  .object({
    action: z.string(),
    description: z.string().describe('The action in plain words.'),
    when: z.string().exactOptional(),
    software_agent: z.string().exactOptional(),
    digital_source_type: z.string().exactOptional(),
  })
  .meta({ id: 'VerifiedAction', description: 'An action that a manifest records.' });

export const verifiedIngredient = z
  .object({
    title: z.string().exactOptional(),
    media_type: z.string().exactOptional(),
    relationship: z.string(),
    manifest: label.exactOptional(),
    state: verificationState.describe('What the signer of this manifest found when it was added.'),
    failures: z.array(z.string()).exactOptional().describe('The codes of what was wrong with it then.'),
  })
  .meta({ id: 'VerifiedIngredient', description: 'What an asset was made from, as its manifest records it.' });

export const verifiedIdentity = z
  .object({
    state: z
      .enum(['trusted', 'valid', 'invalid', 'unverified'])
      .describe(
        '`trusted`: its signature is in order, and its signer is on a list of publishers; `valid`: its signature is in order, and its signer is on no list that this service knows; `invalid`: it does not verify; `unverified`: it could not be checked, or the manifest is not valid.',
      ),
    kind: z
      .enum(['x509', 'claims_aggregation', 'other'])
      .describe('By a certificate, by an aggregator that confirms identities, or in a way that is not known here.'),
    roles: z.array(z.string()).describe('What it states of the signer: `cawg.publisher`, `cawg.creator`.'),
    name: z
      .string()
      .exactOptional()
      .describe('The common name of the certificate; only where its signature is in order.'),
    organization: z.string().exactOptional().describe('Like `name`.'),
    issuer: z.string().exactOptional().describe('The aggregator, as the assertion states it. Nobody checked it.'),
    trust_list: z.string().exactOptional().describe('The list that the signer is on.'),
    failures: z.array(z.string()).exactOptional().describe('The codes of what is wrong with it.'),
  })
  .meta({
    id: 'VerifiedIdentity',
    description: 'An identity assertion of CAWG: who vouches for an asset beside the signer of its manifest.',
  });
export type VerifiedIdentity = z.infer<typeof verifiedIdentity>;

export const verifiedManifest = z
  .object({
    label: z.string(),
    title: z.string().exactOptional(),
    generator: z.string().exactOptional().describe('The program that made the manifest.'),
    signer: z
      .object({
        name: z.string().exactOptional().describe('The common name of the certificate.'),
        organization: z.string().exactOptional(),
        issuer: z.string().exactOptional().describe('Who issued the certificate.'),
        algorithm: z.string().exactOptional().describe('As C2PA and COSE name it: `ES256`, `PS256`, `Ed25519`.'),
        serial_number: z.string().exactOptional(),
        not_before: z.string().exactOptional(),
        not_after: z.string().exactOptional(),
        development: z.literal(true).exactOptional().describe('The development identity of this product.'),
      })
      .exactOptional(),
    time_stamp: z
      .object({ time: z.string(), authority: z.string().exactOptional(), trusted: z.boolean() })
      .exactOptional()
      .describe('When it was signed, as an authority states it.'),
    identity_assertions: z
      .array(verifiedIdentity)
      .exactOptional()
      .describe('Who vouches for it beside its signer: the first ten. They change nothing about `state`.'),
    revocation: z
      .object({
        status: z
          .enum(['good', 'revoked', 'unknown', 'none'])
          .describe(
            '`good`: not revoked; `revoked`: before it was signed, or nobody proves when that was; `unknown`: the authority does not know the certificate; `none`: nothing is stapled that can be used.',
          ),
        as_of: z.string().exactOptional().describe('When the authority said that it is good or unknown.'),
        revoked_at: z.string().exactOptional(),
        problem: z.string().exactOptional().describe('Why what is stapled counts as none.'),
      })
      .exactOptional()
      .describe(
        "What the authority of the signer's certificate says of it, in an OCSP response that the signature carries. Only of the active manifest.",
      ),
    actions: z.array(verifiedAction),
    ingredients: z.array(verifiedIngredient),
    assertions: z.array(z.object({ label: z.string(), created: z.boolean(), data: z.unknown().exactOptional() })),
    omitted: z
      .object({ actions: omitted, ingredients: omitted, assertions: omitted })
      .exactOptional()
      .describe('How many more there are than are listed.'),
  })
  .meta({ id: 'VerifiedManifest', description: 'One manifest of the chain.' });
export type VerifiedManifest = z.infer<typeof verifiedManifest>;

export const publicationDeviation = z
  .object({
    kind: z
      .enum(['missing', 'added', 'swapped', 'reordered', 'altered', 'unsigned', 'unreadable', 'ambiguous'])
      .describe(
        '`missing`: signed, and not there, or left out by a playlist; `added`: there, and never signed for this publication, or played twice; `swapped`: another part of the publication stands in its place; `reordered`: not in the order that was signed; `altered`: not the bytes that were signed; `unsigned`: an init segment without a manifest, media without an init segment, or what subtitles name; `unreadable`: the reader cannot read it; `ambiguous`: players may read the line of the playlist differently.',
      ),
    part: z
      .enum(['init', 'fragment', 'rendition', 'playlist', 'files'])
      .describe(
        '`files`: text, pictures and media beside the signed renditions that the playlist in `file` names; of kind `unsigned`, files that texts name, such as `file` in `playlist`.',
      ),
    count: z
      .int()
      .min(1)
      .describe(
        'How many it stands for; more than one only of missing parts that follow one another, and of parts that nobody signed.',
      ),
    file: z
      .string()
      .exactOptional()
      .describe('Relative to the folder; with the byte range where it is a part of a file.'),
    rendition: z.string().exactOptional().describe('The init segment of the rendition.'),
    playlist: z.string().exactOptional().describe('The playlist, or the subtitles, that show it.'),
    index: z
      .int()
      .min(0)
      .exactOptional()
      .describe('Position in the playback order of that playlist, counted from zero.'),
    signed_index: z.int().min(0).exactOptional().describe('Position in the order that was signed, counted from zero.'),
    time_seconds: z.number().exactOptional().describe('When it is played, from the start of the programme.'),
    signed_as: z
      .object({ rendition: z.string(), index: z.int().min(0).exactOptional() })
      .exactOptional()
      .describe('Where what stands there was signed.'),
    codes: z.array(z.string()).exactOptional().describe('What the official reader reports of it.'),
    line: z.int().min(1).exactOptional().describe('The line of the playlist in `file`, counted from one.'),
    problem: z.string().exactOptional().describe('What is wrong in that line.'),
  })
  .meta({ id: 'PublicationDeviation', description: 'A part of a publication that is not as it was signed.' });
export type PublicationDeviation = z.infer<typeof publicationDeviation>;

const counted = z.int().min(0);

export const rubricResult = z
  .object({
    rubric: z.string().describe('The name of its file.'),
    name: z.string().exactOptional(),
    version: z.string().exactOptional(),
    counts: z.object({ true: counted, false: counted, warn: counted, error: counted }),
    statements: z.array(
      z.object({
        id: z.string(),
        result: z
          .enum(['true', 'false', 'warn', 'error'])
          .describe(
            'As the rubric words it: of a conformance rubric `false` is a failure. `error`: it could not be evaluated.',
          ),
        text: z.string(),
      }),
    ),
  })
  .meta({ id: 'RubricResult', description: 'What a rubric says of an asset.' });
export type RubricResult = z.infer<typeof rubricResult>;

export const publicationVerification = z
  .object({
    presentation: z
      .enum(['as_signed', 'changed', 'equivalent', 'not_signed'])
      .describe(
        'What is compared beside the media. `as_signed`: every playlist, and the text and pictures that it names, are the signed ones; `changed`: they differ; `equivalent`: they differ, and the request accepts that; `not_signed`: the manifest does not sign them.',
      ),
    entries: z
      .array(z.string())
      .describe('The playlists that were judged by all that players reach from each: the first ten.'),
    playlists_absent: z
      .array(z.string())
      .exactOptional()
      .describe('Signed playlists that are not there: the first ten.'),
    unknown_names: z
      .array(z.object({ file: z.string(), line: z.int().min(1), name: z.string() }))
      .exactOptional()
      .describe(
        'Names in playlists that this service does not know: the first ten. They change nothing that plays in players that do not know them either.',
      ),
    order_unknown: z
      .array(z.string())
      .exactOptional()
      .describe(
        'Playlists that nobody signed and that play media under several init segments one after the other, where nothing says in which order they were signed: the first ten.',
      ),
    times_unknown: counted
      .exactOptional()
      .describe(
        'Fragments that do not say when they play, so that the times of playlists were not compared with theirs.',
      ),
    renditions_not_offered: counted
      .exactOptional()
      .describe('Signed renditions that the chosen entries do not offer, where nobody signed the playlists.'),
    manifests: counted
      .exactOptional()
      .describe(
        'Manifests of what playlists that nobody signed play, where there are several: nobody signed that it belongs together.',
      ),
    rendition_alone: z
      .array(z.string())
      .exactOptional()
      .describe('Entries that are media playlists, which offer one rendition alone: the first ten.'),
    renditions: counted,
    fragments: counted.describe('Fragments that playlists name, or that are missing from them.'),
    intact: counted,
    read_officially: counted.describe('Fragments that the official reader read; all were hashed.'),
    manifests_read_alone: counted
      .exactOptional()
      .describe(
        'Manifests that the official reader read without a fragment, because all under them have more than 64 MiB: this service alone compared these with the manifest. Only where there are any.',
      ),
    signers: z
      .array(z.string())
      .exactOptional()
      .describe('Only where its init segments have manifests of different signers: the first ten.'),
    deviations: z.record(z.string(), counted).describe('How many of each kind.'),
    first: z.array(publicationDeviation).describe('The first of them, in the order of the programme.'),
    omitted: omitted.describe('How many entries more there are than are listed.'),
  })
  .meta({ id: 'PublicationVerification', description: 'A publication, compared with what was signed part by part.' });
export type PublicationVerification = z.infer<typeof publicationVerification>;

export const verification = z
  .object({
    state: verificationState,
    summary: z.string().describe('The verdict in a few sentences.'),
    manifest_from: z.enum(['embedded', 'sidecar']).exactOptional().describe('Where the manifest was found.'),
    trust_list: z.string().exactOptional().describe('The trust list that the signer is on.'),
    codes: z.array(validationCode),
    manifests: z
      .array(verifiedManifest)
      .describe(
        'The chain, the active manifest first. Of a publication, the chain of the first init segment with one.',
      ),
    publication: publicationVerification.exactOptional().describe('Only of folders that carry a manifest.'),
    rubrics: z
      .array(rubricResult)
      .exactOptional()
      .describe('Only where the request asks for rubrics and there is a manifest.'),
    crjson: z
      .unknown()
      .exactOptional()
      .describe('The crJSON of the official reader, up to 512 KiB; of a publication by its first fragment.'),
    crjson_omitted: z.string().exactOptional().describe('Why there is no crJSON, or no result of rubrics.'),
    omitted: z
      .object({ codes: omitted, manifests: omitted })
      .exactOptional()
      .describe('How many more there are than are listed.'),
  })
  .meta({
    id: 'Verification',
    description: 'What was found out about an input of `verify`.',
    examples: [
      {
        state: 'valid',
        summary: 'Unchanged since signing. "Example Broadcasting" is on no trust list that this service knows.',
        manifest_from: 'embedded',
        codes: [
          {
            code: 'signingCredential.untrusted',
            kind: 'failure',
            explanation: 'The signer is on no trust list that this service knows.',
            count: 1,
          },
          {
            code: 'assertion.bmffHash.match',
            kind: 'success',
            explanation: 'The media is what was signed.',
            count: 1,
          },
        ],
        manifests: [
          {
            label: 'urn:c2pa:6749b230-d01a-432b-a20c-d2b5e839e32e',
            title: 'interview_c2pa.mp4',
            generator: 'Attestream 0.1.0',
            signer: { name: 'Example signer', organization: 'Example Broadcasting', algorithm: 'ES256' },
            actions: [{ action: 'c2pa.opened', description: 'Opened for editing', when: '2026-11-21T10:00:00.000Z' }],
            ingredients: [{ title: 'interview.mp4', media_type: 'video/mp4', relationship: 'parentOf', state: 'none' }],
            assertions: [{ label: 'c2pa.actions.v2', created: true }],
          },
        ],
      },
    ],
  });
export type Verification = z.infer<typeof verification>;
