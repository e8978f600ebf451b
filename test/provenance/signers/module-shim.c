// A PKCS #11 module in front of SoftHSM that misbehaves as environment variables say, for tests.
#define CK_PTR *
#define CK_DECLARE_FUNCTION(returnType, name) returnType name
#define CK_DECLARE_FUNCTION_POINTER(returnType, name) returnType(*name)
#define CK_CALLBACK_FUNCTION(returnType, name) returnType(*name)
#define NULL_PTR 0
#include "pkcs11.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static CK_FUNCTION_LIST_PTR real;
static CK_FUNCTION_LIST list;

static long setting(const char *name) {
  const char *value = getenv(name);
  return value == NULL ? 0 : strtol(value, NULL, 0);
}

static int arrived;

/** Delays, damages or fails signatures. */
static CK_RV sign(CK_SESSION_HANDLE session, CK_BYTE_PTR data, CK_ULONG size, CK_BYTE_PTR signature, CK_ULONG_PTR length) {
  // Returns only once so many signatures have been asked for at the same time.
  if (setting("SHIM_MEETING") != 0) {
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < setting("SHIM_MEETING")) usleep(1000);
  }
  usleep(setting("SHIM_DELAY_MS") * 1000);
  if (setting("SHIM_ERROR") != 0) return setting("SHIM_ERROR");
  CK_RV result = real->C_Sign(session, data, size, signature, length);
  if (setting("SHIM_DAMAGE") != 0 && result == CKR_OK) signature[0] ^= 1;
  return result;
}

/** Counts logins by the bytes of a file. */
static CK_RV logIn(CK_SESSION_HANDLE session, CK_USER_TYPE user, CK_UTF8CHAR_PTR pin, CK_ULONG length) {
  FILE *file = fopen(getenv("SHIM_LOGINS"), "a");
  fputc('.', file);
  fclose(file);
  return real->C_Login(session, user, pin, length);
}

/** Shows flags of the token that the real one does not have. */
static CK_RV tokenInfo(CK_SLOT_ID slot, CK_TOKEN_INFO_PTR info) {
  CK_RV result = real->C_GetTokenInfo(slot, info);
  info->flags |= setting("SHIM_FLAGS");
  return result;
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST_PTR_PTR result) {
  void *module = dlopen("/usr/lib/softhsm/libsofthsm2.so", RTLD_NOW);
  if (module == NULL) return CKR_GENERAL_ERROR;
  ((CK_C_GetFunctionList)dlsym(module, "C_GetFunctionList"))(&real);
  list = *real;
  list.C_Sign = sign;
  list.C_Login = logIn;
  list.C_GetTokenInfo = tokenInfo;
  *result = &list;
  return CKR_OK;
}
