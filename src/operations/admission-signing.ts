import type { Config } from '#config/config.ts';
import type { ApiParent, ApiParentFileSource, C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { type ReferenceLocation, requireResolver } from './admission-inputs.ts';

/** Admits what all signing operations have in their `params`: parents and overrides. */
export function admitSigningParams(params: C2paParams, inputCount: number, config: Config): void {
  admitParent(params.parent, config, { field: 'params.parent' });
  const overridden = new Set<number>();
  for (const [index, override] of (params.parent_overrides ?? []).entries()) {
    const field = `params.parent_overrides[${index}]`;
    const { input_index: inputIndex } = override;
    if (inputIndex >= inputCount) {
      throw new AppError('OVERRIDE_OUT_OF_RANGE', { inputIndex, inputCount }, { field: `${field}.input_index` });
    }
    if (overridden.has(inputIndex)) {
      throw new AppError('OVERRIDE_REPEATED', { inputIndex }, { field: `${field}.input_index`, inputIndex });
    }
    overridden.add(inputIndex);
    admitParent(override.parent, config, { field: `${field}.parent`, inputIndex });
  }
}

function admitParent(parent: ApiParent | null | undefined, config: Config, location: ReferenceLocation): void {
  if (parent?.type !== 'file') return;
  requireResolver(parent.source, config, { ...location, field: `${location.field}.source` });
}

/** The files that the parents of a request are read from; outputs must spare them like the inputs. */
export function parentSources({ parent, parent_overrides: overrides = [] }: C2paParams): ApiParentFileSource[] {
  return [parent, ...overrides.map((override) => override.parent)].flatMap((candidate) =>
    candidate?.type === 'file' ? [candidate.source] : [],
  );
}
