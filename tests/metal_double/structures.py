"""Metal's structures and constants, with the values from PyObjC's tables."""

from __future__ import annotations

from typing import NamedTuple


class MTLSize(NamedTuple):
    width: int
    height: int
    depth: int


class NSRange(NamedTuple):
    location: int
    length: int


_CONSTANTS = """
MTLLanguageVersion2_3=131075 MTLLanguageVersion2_4=131076 MTLLanguageVersion3_0=196608 MTLLanguageVersion3_1=196609
MTLLanguageVersion3_2=196610
MTLMathModeSafe=0 MTLMathModeRelaxed=1 MTLMathFloatingPointFunctionsFast=0 MTLMathFloatingPointFunctionsPrecise=1
MTLLogLevelDebug=1 MTLLogLevelNotice=3 MTLResourceUsageRead=1 MTLResourceUsageWrite=2
MTLCaptureDestinationGPUTraceDocument=2
MTLResourceStorageModeShared=0 MTLGPUFamilyApple7=1007
MTLCommandBufferErrorOptionEncoderExecutionStatus=1
MTLCommandBufferStatusNotEnqueued=0 MTLCommandBufferStatusCommitted=2 MTLCommandBufferStatusCompleted=4
MTLCommandBufferStatusError=5
MTLCommandBufferErrorInternal=1 MTLCommandBufferErrorTimeout=2 MTLCommandBufferErrorPageFault=3
MTLCommandBufferErrorAccessRevoked=4 MTLCommandBufferErrorNotPermitted=7 MTLCommandBufferErrorOutOfMemory=8
MTLCommandBufferErrorInvalidResource=9 MTLCommandBufferErrorDeviceRemoved=11 MTLCommandBufferErrorStackOverflow=12
MTLCounterSamplingPointAtStageBoundary=0 MTLCounterSamplingPointAtDispatchBoundary=2 MTLStorageModeShared=0
MTLCounterErrorValue=18446744073709551615
MTLPipelineOptionNone=0 MTLPipelineOptionFailOnBinaryArchiveMiss=4 MTLShaderValidationEnabled=1
MTLFunctionLogTypeValidation=0
MTLCommandEncoderErrorStateAffected=2 MTLCommandEncoderErrorStatePending=3 MTLCommandEncoderErrorStateFaulted=4
"""
CONSTANTS = {name: int(value) for name, _, value in (word.partition("=") for word in _CONSTANTS.split())}

# MTLDataType: each scalar's number, followed by its vectors of 2, 3 and 4.
SCALARS = {
    "Float": (3, "f"), "Half": (16, "e"), "Int": (29, "i"), "UInt": (33, "I"), "Short": (37, "h"), "UShort": (41, "H"),
    "Char": (45, "b"), "UChar": (49, "B"), "Bool": (53, "?"), "Long": (81, "q"), "ULong": (85, "Q"),
    "BFloat": (121, "bfloat"),
}  # fmt: skip
for _name, (_first, _) in SCALARS.items():
    for _count in (1, 2, 3, 4):
        CONSTANTS[f"MTLDataType{_name}{_count if _count > 1 else ''}"] = _first + _count - 1
STRINGS = {
    "MTLCommandBufferEncoderInfoErrorKey": "MTLCommandBufferEncoderInfoErrorKey",
    "MTLCommonCounterSetTimestamp": "timestamp",
}
