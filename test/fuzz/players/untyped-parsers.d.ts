declare module 'm3u8-parser' {
  interface Range {
    readonly offset: number;
    readonly length: number;
  }
  interface Part {
    readonly uri: string;
    readonly byterange?: Range;
  }
  type Groups = Readonly<Record<string, Readonly<Record<string, { readonly uri?: string }>>>>;
  export class Parser {
    readonly manifest: {
      readonly segments: readonly (Part & { readonly map?: Part; readonly gap?: boolean })[];
      readonly playlists?: readonly { readonly uri: string }[];
      readonly iFramePlaylists?: readonly { readonly uri: string }[];
      readonly mediaGroups?: Readonly<Record<string, Groups>>;
    };
    push(text: string): void;
    end(): void;
  }
}

declare module 'mpd-parser' {
  interface Part {
    readonly resolvedUri: string;
    readonly byterange?: { readonly offset: number | bigint; readonly length: number | bigint };
  }
  interface Representation {
    readonly attributes: Readonly<Record<string, unknown>>;
    readonly segmentInfo: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  }
  export function stringToMpdXml(text: string): unknown;
  export function inheritAttributes(
    mpd: unknown,
    options: { readonly manifestUri: string },
  ): { readonly representationInfo: readonly Representation[] };
  export function toPlaylists(
    representations: readonly Representation[],
  ): readonly { readonly segments?: readonly (Part & { readonly map?: Part })[] }[];
}
